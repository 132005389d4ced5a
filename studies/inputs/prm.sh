# Compiles the parallel remove_all of C++17.
set -eu
command -v c++ || { echo "there is no C++ compiler: install g++"; exit 3; }
c++ -std=c++17 -O2 -pthread -o prm prm.cpp

# A new project of Django in a virtual environment of its own.
set -eu
python3 -m venv venv || { echo "there is no venv: install python3-venv"; exit 3; }
venv/bin/pip install --quiet --no-input --retries 10 --timeout 60 --disable-pip-version-check 'django>=4.2,<6'
mkdir project
venv/bin/django-admin startproject mysite project
# Compiles what is left to compile, so that no run has to.
venv/bin/python project/manage.py check
venv/bin/pip freeze >versions.txt

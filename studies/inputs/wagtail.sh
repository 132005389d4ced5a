# A new project of Wagtail, a content management system on Django, in a virtual environment of its own: some 20,000 files.
set -eu
python3 -m venv venv || { echo "there is no venv: install python3-venv"; exit 3; }
venv/bin/pip install --quiet --no-input --retries 10 --timeout 60 --disable-pip-version-check 'wagtail>=6,<8'
venv/bin/wagtail start project
# Compiles what is left to compile, so that no run has to.
venv/bin/python project/manage.py check
venv/bin/pip freeze >versions.txt

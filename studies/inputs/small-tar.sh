# A small tar of made-up files, of the sizes that source has on average.
set -eu
"$INODYNE" tree make tree --spec "dirs=60,fan=10,files=15,bytes=~12000"
tar -c --sort=name -f part.tar tree
rm -r tree

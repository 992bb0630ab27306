#!/bin/sh
# From files to files: run in an empty folder, with `gape` on the PATH.
#
# Needs the command line: pip install 'gape[cli]'
# The molecules at the end need RDKit too, and say so where it is missing: pip install 'gape[bench]'
set -e

cat > friends.csv <<END
source,target,weight,graph
ann,bob,2,work
bob,cid,1,work
ann,bob,1,home
END

gape encode friends.csv --undirected --encoding gape --states 4 --seed 1 -o pe.csv
cat pe.csv

gape cache

printf 'smiles\nCCO\nc1ccccc1\n' > molecules.csv
gape encode molecules.csv --encoding rw --length 6 -o molecules.parquet

# words: -m odd_package --rate 0.1 file
# real

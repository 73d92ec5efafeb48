# words: -m odd_package.train one two

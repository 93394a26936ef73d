wc -l < words.txt > count.txt

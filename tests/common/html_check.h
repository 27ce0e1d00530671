/* A strict reader of the HTML that this program writes: tags nest, attributes are quoted and occur once, ids are
 * unique, every fragment leads to an id, and nothing points outside. */
#pragma once

#include <stddef.h>

struct html_counts {
    int n_elements, n_ids, n_images, n_svgs, n_tables, n_scripts;
};

/* Fails the test with the place of the first fault. */
void html_check(const char *html, struct html_counts *counts);
/* Copies text without its entities (&amp; &lt; &gt; &quot; &#N; &#xN;) and without tags. */
void html_text(const char *html, size_t n, char *out, size_t capacity);

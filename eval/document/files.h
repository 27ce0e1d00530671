/* A report's files: each appears whole or not at all. */
#pragma once

#include "engine/image/image.h"
#include "eval/document/figure.h"

enum { LK_DOCUMENT_PATH_MAX = 3800 };

/* Makes every folder of the path that is not there. LK_E_USAGE for a path that is empty or too long, LK_E_IO. */
enum lk_code lk_document_folder(const char *folder);
/* FOLDER/NAMEENDING; frees the text in any case, and fails with its failure. */
enum lk_code lk_document_file(const char *folder, const char *name, const char *ending, struct lk_text *text);
/* FOLDER/ID.csv, .json, .md and .tex. */
enum lk_code lk_document_table_files(const struct lk_table *table, const char *folder);
/* Its wide drawing with its colours as FOLDER/NAME.svg, and with png as FOLDER/NAME.png too, which is written first. */
enum lk_code lk_document_drawing(const struct lk_figure *figure, const char *folder, const char *name, bool png);
/* Those of its numbers, and beside them its wide drawing with its colours, in FOLDER/ID_data.svg; with png in
 * FOLDER/ID_data.png too. */
enum lk_code lk_document_figure_files(const struct lk_figure *figure, const char *folder, bool png);
/* A drawing as RGB on white, two pixels for each of its own. Bytes depend on the machine's librsvg and fonts.
 * LK_E_USAGE where there is no librsvg. */
enum lk_code lk_figure_pixels(const struct lk_text *svg, struct lk_image *out);

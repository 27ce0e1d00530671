/* booktabs tables. Texts are escaped for LaTeX; the symbols that statistics needs become math, so that pdflatex sets
 * them too. Letters of other scripts are left as they are, for engines that know them. */
#include <string.h>

#include "eval/document/table_print.h"

#define LONG_ROWS  40 /* rows beyond which a table may break across pages */
#define WRAP_BYTES 40 /* longest text that stays on one line */

static const struct {
    const char *utf8, *latex;
} symbols[] = {
    {"\\", "\\textbackslash{}"},
    {"{", "\\{"},
    {"}", "\\}"},
    {"$", "\\$"},
    {"&", "\\&"},
    {"#", "\\#"},
    {"%", "\\%"},
    {"_", "\\_"},
    {"~", "\\textasciitilde{}"},
    {"^", "\\textasciicircum{}"},
    {"<", "\\textless{}"},
    {">", "\\textgreater{}"},
    {"|", "\\textbar{}"},
    {"\"", "\\textquotedbl{}"},
    {"`", "\\textasciigrave{}"},
    {"[", "{[}"}, /* after \\ or at the start of a row it would be an option */
    {"]", "{]}"},
    {"*", "{*}"},
    {"\n", " "},
    {"\t", " "},
    {"\r", " "},
    {"–", "--"},
    {"—", "---"},
    {"‘", "`"},
    {"’", "'"},
    {"“", "``"},
    {"”", "''"},
    {"…", "\\ldots{}"},
    {"−", "$-$"},
    {"±", "$\\pm$"},
    {"×", "$\\times$"},
    {"÷", "$\\div$"},
    {"·", "$\\cdot$"},
    {"≤", "$\\leq$"},
    {"≥", "$\\geq$"},
    {"≠", "$\\neq$"},
    {"≈", "$\\approx$"},
    {"→", "$\\rightarrow$"},
    {"√", "$\\surd$"},
    {"²", "$^{2}$"},
    {"³", "$^{3}$"},
    {"°", "$^{\\circ}$"},
    {"α", "$\\alpha$"},
    {"β", "$\\beta$"},
    {"ε", "$\\varepsilon$"},
    {"η", "$\\eta$"},
    {"κ", "$\\kappa$"},
    {"μ", "$\\mu$"},
    {"ρ", "$\\rho$"},
    {"σ", "$\\sigma$"},
    {"τ", "$\\tau$"},
    {"φ", "$\\varphi$"},
    {"χ", "$\\chi$"},
    {"Δ", "$\\Delta$"},
    {"Σ", "$\\Sigma$"},
};

/* Leading letters, digits and marks that LaTeX takes as they are. */
static size_t plain(const char *text) {
    size_t n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z') ||
           (text[n] >= '0' && text[n] <= '9') || text[n] == ' ' || text[n] == '.' || text[n] == ',')
        n++;
    return n;
}

/* minus: a hyphen before a digit is a sign. Two hyphens in a row would become a dash, so they are kept apart. */
static void escaped(struct lk_text *out, const char *text, bool minus) {
    for (const char *at = text; *at;) {
        size_t n_plain = plain(at), n = 0, i = 0;
        lk_text_bytes(out, at, n_plain);
        if (!*(at += n_plain)) return;
        for (; i < sizeof symbols / sizeof *symbols; i++)
            if (*at == *symbols[i].utf8 && !strncmp(at, symbols[i].utf8, n = strlen(symbols[i].utf8))) break;
        if (i < sizeof symbols / sizeof *symbols)
            lk_text_add(out, "%s", symbols[i].latex);
        else if (n = 1, *at == '-')
            lk_text_add(out, minus && at[1] >= '0' && at[1] <= '9' ? "$-$" : at[1] == '-' ? "-{}" : "-");
        else if (*at == '\'' && at[1] == '\'')
            lk_text_add(out, "'{}");
        else if ((unsigned char)*at < 0x20 || *at == 0x7f)
            lk_text_add(out, "?");
        else
            lk_text_bytes(out, at, 1);
        at += n;
    }
}

static void cell_text(struct lk_text *out, const struct lk_table_notes *notes, const struct lk_table_row *row, int i) {
    const struct lk_cell *cell = &row->cells[i];
    char interval[2 * LK_NUMBER_MAX + 8], mark[8];
    bool bold = (cell->bold || (row->heading && cell->span == 1)) && cell->text[0];
    bool italic = row->heading && cell->span > 1;
    if (cell->span > 1) lk_text_add(out, "\\multicolumn{%d}{l}{", cell->span);
    if (bold) lk_text_add(out, "\\textbf{");
    if (italic) lk_text_add(out, "\\textit{");
    escaped(out, cell->text, cell->kind == LK_CELL_NUMBER);
    if (bold || italic) lk_text_add(out, "}");
    if (lk_print_interval(interval, cell)) {
        lk_text_add(out, " {\\footnotesize ");
        escaped(out, interval, true);
        lk_text_add(out, "}");
    }
    int note = lk_table_notes_index(notes, cell->note);
    if (note >= 0) {
        lk_print_note_mark(mark, note);
        lk_text_add(out, "\\textsuperscript{%s}", mark);
    }
    if (cell->span > 1) lk_text_add(out, "}");
}

/* The longest text of a column, in bytes. */
static size_t longest(const struct lk_table *table, int column) {
    size_t most = strlen(table->columns[column]);
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (row->n_cells != table->n_columns) continue;
        size_t n = strlen(row->cells[column].text);
        if (n > most) most = n;
    }
    return most;
}

/* l, r, or a paragraph for long texts, which share the width that is left. */
static void column_types(struct lk_text *out, const struct lk_table *table) {
    size_t total = 0, fixed = 0;
    for (int c = 0; c < table->n_columns; c++) {
        size_t n = longest(table, c);
        if (n > WRAP_BYTES)
            total += n < 120 ? n : 120;
        else
            fixed += n;
    }
    /* A character of normal text is about 1/85 of the line, the room between columns 1/40. */
    double left = 0.99 - 0.025 * table->n_columns - 0.012 * (double)fixed;
    if (left < 0.25) left = 0.25;
    for (int c = 0; c < table->n_columns; c++) {
        size_t n = longest(table, c);
        if (n > WRAP_BYTES)
            lk_text_add(out, "p{%.2f\\linewidth}", left * (double)(n < 120 ? n : 120) / (double)total);
        else
            lk_text_add(out, table->align[c] == LK_ALIGN_RIGHT ? "r" : "l");
    }
}

static void header(struct lk_text *out, const struct lk_table *table) {
    lk_text_add(out, "\\toprule\n");
    for (int c = 0; c < table->n_columns; c++) {
        bool right = table->align[c] == LK_ALIGN_RIGHT;
        lk_text_add(out, "%s\\multicolumn{1}{%s}{\\textbf{", c ? " & " : "", right ? "r" : "l");
        escaped(out, table->columns[c], false);
        lk_text_add(out, "}}");
    }
    lk_text_add(out, " \\\\\n\\midrule\n");
}

static void body(struct lk_text *out, const struct lk_table *table, const struct lk_table_notes *notes) {
    for (int r = 0; r < table->n_rows; r++) {
        const struct lk_table_row *row = &table->rows[r];
        if (row->heading && r) lk_text_add(out, "\\addlinespace\n");
        for (int i = 0; i < row->n_cells; i++) {
            if (i) lk_text_add(out, " & ");
            cell_text(out, notes, row, i);
        }
        lk_text_add(out, " \\\\\n");
    }
    if (table->no_data) lk_text_add(out, "\\multicolumn{%d}{l}{no data} \\\\\n", table->n_columns);
    lk_text_add(out, "\\bottomrule\n");
}

static void notes_below(struct lk_text *out, const struct lk_table *table, const struct lk_table_notes *notes) {
    if (!table->note && !notes->n) return;
    lk_text_add(out, "\\par\\smallskip\n\\begin{minipage}{\\linewidth}\\footnotesize\n");
    if (table->note) {
        escaped(out, table->note, false);
        lk_text_add(out, "\\par\n");
    }
    for (int i = 0; i < notes->n; i++) {
        char mark[8];
        lk_print_note_mark(mark, i);
        lk_text_add(out, "\\textsuperscript{%s} ", mark);
        escaped(out, notes->list[i], false);
        lk_text_add(out, "\\par\n");
    }
    lk_text_add(out, "\\end{minipage}\n");
}

static void caption(struct lk_text *out, const struct lk_table *table) {
    lk_text_add(out, "\\caption{");
    escaped(out, table->caption, false);
    lk_text_add(out, "}\\label{tab:");
    lk_print_fragment(out, table->id);
    lk_text_add(out, "}");
}

void lk_table_latex(const struct lk_table *table, struct lk_text *out) {
    struct lk_table_notes notes;
    enum lk_code rc = lk_table_notes(table, &notes);
    if (rc && !out->rc) out->rc = rc;
    if (table->run) {
        lk_text_add(out, "%% run: ");
        escaped(out, table->run->name, false); /* without control characters: it cannot end the comment */
        lk_text_add(out, "\n%% configuration %s; ", table->run->configuration);
        if (table->run->n_nominal) lk_text_add(out, "nominal N %lld, ", (long long)table->run->n_nominal);
        lk_text_add(out, "valid N %lld\n", (long long)table->run->n_valid);
    }
    if (table->n_rows > LONG_ROWS) {
        lk_text_add(out, "\\begin{longtable}{");
        column_types(out, table);
        lk_text_add(out, "}\n");
        caption(out, table);
        lk_text_add(out, " \\\\\n");
        header(out, table);
        lk_text_add(out, "\\endfirsthead\n");
        header(out, table);
        lk_text_add(out, "\\endhead\n");
        body(out, table, &notes);
        lk_text_add(out, "\\end{longtable}\n");
        notes_below(out, table, &notes);
    } else {
        lk_text_add(out, "\\begin{table}[htbp]\n\\centering\n");
        caption(out, table);
        lk_text_add(out, "\n\\begin{tabular}{");
        column_types(out, table);
        lk_text_add(out, "}\n");
        header(out, table);
        body(out, table, &notes);
        lk_text_add(out, "\\end{tabular}\n");
        notes_below(out, table, &notes);
        lk_text_add(out, "\\end{table}\n");
    }
    lk_table_notes_free(&notes);
}

/* The counts as text or JSON: on request, and at the end of the process where GPUSIM_REPORT says so. */
#include "counters/counts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const gpusim_class_names[GPUSIM_N_CLASSES] = {
    [GPUSIM_CLASS_INTEGER] = "integer",
    [GPUSIM_CLASS_F16] = "f16",
    [GPUSIM_CLASS_F32] = "f32",
    [GPUSIM_CLASS_F64] = "f64",
    [GPUSIM_CLASS_CONVERT] = "convert",
    [GPUSIM_CLASS_SPECIAL] = "special",
    [GPUSIM_CLASS_MOVE] = "move",
    [GPUSIM_CLASS_CONTROL] = "control",
    [GPUSIM_CLASS_BARRIER] = "barrier",
    [GPUSIM_CLASS_LOAD] = "load",
    [GPUSIM_CLASS_STORE] = "store",
    [GPUSIM_CLASS_ATOMIC] = "atomic",
    [GPUSIM_CLASS_ASYNC_COPY] = "async_copy",
    [GPUSIM_CLASS_MATRIX_LOAD] = "matrix_load",
    [GPUSIM_CLASS_MMA] = "tensor",
    [GPUSIM_CLASS_WARP] = "warp",
};
const char *const gpusim_tensor_names[GPUSIM_N_TENSORS] = {"f16", "bf16", "tf32", "int8", "f64"};
const char *const gpusim_traffic_names[GPUSIM_N_TRAFFIC] = {"loads", "stores", "atomics", "async_copies",
                                                            "matrix_loads"};
const char *const gpusim_bound_names[GPUSIM_N_BOUNDS] = {"tensor", "issue", "units", "shared", "l2", "hbm"};

static double sum(const double *values, int n) {
    double total = 0;
    for (int i = 0; i < n; i++) total += values[i];
    return total;
}

static int binding(const struct gpusim_counts *c) {
    int best = 0;
    for (int b = 1; b < GPUSIM_N_BOUNDS; b++)
        if (c->seconds[b] > c->seconds[best]) best = b;
    return best;
}

struct totals {
    double issued, lanes_active, sectors, bytes, requests, l2_sectors, wavefronts, conflicts, flops;
};
static struct totals totals_of(const struct gpusim_counts *c) {
    struct totals t = {.issued = sum(c->issued, GPUSIM_N_CLASSES), .flops = sum(c->tensor_flops, GPUSIM_N_TENSORS)};
    for (int k = 0; k < GPUSIM_N_TRAFFIC; k++) {
        t.requests += c->global[k].requests;
        t.bytes += c->global[k].bytes;
        t.sectors += c->global[k].sectors;
        t.l2_sectors += c->global[k].l2_sectors;
        t.wavefronts += c->shared[k].wavefronts;
        t.conflicts += c->shared[k].wavefronts - c->shared[k].least;
    }
    t.lanes_active = t.issued > 0 ? 32 - c->idle_lanes / t.issued : 0;
    return t;
}

static double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

static void text_sites(FILE *out, const struct gpusim_counts *c) {
    for (const struct gpusim_site *s = c->sites; s; s = s->next) {
        if (s->conflicts <= 0 && s->sector_excess <= s->sectors * 0.01) continue;
        fprintf(out,
                "    wasteful: %s:%u, PTX line %u: %.0f bank conflicts, %.0f of %.0f sectors' bytes not asked for\n",
                s->file ? s->file : "?", s->source_line, s->ptx_line, s->conflicts, s->sector_excess, s->sectors);
    }
}

static void text_bound(FILE *out, const struct gpusim_counts *c, const struct totals *t) {
    fprintf(out, "  modelled A100 lower bound, not measured: %.6g us, bound by %s:", c->bound_seconds * 1e6,
            gpusim_bound_names[binding(c)]);
    for (int b = 0; b < GPUSIM_N_BOUNDS; b++)
        fprintf(out, " %s %.4g%s", gpusim_bound_names[b], c->seconds[b] * 1e6, b + 1 < GPUSIM_N_BOUNDS ? "," : "");
    if (t->flops > 0) fprintf(out, "; tensor cores %.4g TF/s", share(t->flops, c->bound_seconds) * 1e-12);
    fprintf(out, "; blocks fill %.1f %% of the SMs' turns, %.6g waves\n", 100 * share(c->blocks, c->quantised_blocks),
            c->waves);
}

static void text_one(FILE *out, const struct gpusim_counts *c) {
    struct totals t = totals_of(c);
    fprintf(out, "%s: %.0f launches, %.0f blocks (%.0f run), grid %ux%ux%u, block %ux%ux%u\n", c->name, c->launches,
            c->blocks, c->blocks_run, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2]);
    fprintf(out, "  %u registers%s, %u spilled bytes, shared %u + %u bytes, %u blocks per SM (%s)\n", c->registers,
            c->registers_exact ? "" : " (estimate)", c->spill_bytes, c->static_shared, c->dynamic_shared,
            c->blocks_per_sm, c->limit);
    fprintf(out, "  machine instructions about %.6g; PTX instructions %.6g, %.2f lanes active:", c->machine_issued,
            t.issued, t.lanes_active);
    for (int k = 0; k < GPUSIM_N_CLASSES; k++)
        if (c->issued[k] > 0) fprintf(out, " %s %.6g", gpusim_class_names[k], c->issued[k]);
    fprintf(out, "\n");
    for (int k = 0; k < GPUSIM_N_TENSORS; k++)
        if (c->tensor_flops[k] > 0)
            fprintf(out, "  tensor %s: %.6g FLOP\n", gpusim_tensor_names[k], c->tensor_flops[k]);
    for (int k = 0; k < GPUSIM_N_TRAFFIC; k++)
        if (c->global[k].requests > 0)
            fprintf(out, "  global %s: %.6g requests, %.6g sectors, efficiency %.1f %%, %.6g sectors from L2\n",
                    gpusim_traffic_names[k], c->global[k].requests, c->global[k].sectors,
                    100 * share(c->global[k].bytes, 32 * c->global[k].sectors), c->global[k].l2_sectors);
    if (t.sectors > 0) fprintf(out, "  unique bytes: %.6g read, %.6g written\n", c->unique_read, c->unique_written);
    for (int k = 0; k < GPUSIM_N_TRAFFIC; k++)
        if (c->shared[k].requests > 0)
            fprintf(out, "  shared %s: %.6g requests, %.6g wavefronts, %.6g bank conflicts\n", gpusim_traffic_names[k],
                    c->shared[k].requests, c->shared[k].wavefronts, c->shared[k].wavefronts - c->shared[k].least);
    if (c->local_requests > 0) fprintf(out, "  local: %.6g requests, %.6g bytes\n", c->local_requests, c->local_bytes);
    text_bound(out, c, &t);
    text_sites(out, c);
}

static void lk_tokenizer_json_string(FILE *out, const char *text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') fputc('\\', out);
        if ((unsigned char)*text < 32)
            fprintf(out, "\\u%04x", (unsigned char)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void json_numbers(FILE *out, const char *name, const char *const *names, const double *values, int n) {
    fprintf(out, ", \"%s\": {", name);
    for (int i = 0; i < n; i++) fprintf(out, "%s\"%s\": %.17g", i ? ", " : "", names[i], values[i]);
    fprintf(out, "}");
}

static void json_traffic(FILE *out, const struct gpusim_counts *c) {
    fprintf(out, ", \"global\": {");
    for (int k = 0; k < GPUSIM_N_TRAFFIC; k++)
        fprintf(out, "%s\"%s\": {\"requests\": %.17g, \"bytes\": %.17g, \"sectors\": %.17g, \"l2_sectors\": %.17g}",
                k ? ", " : "", gpusim_traffic_names[k], c->global[k].requests, c->global[k].bytes, c->global[k].sectors,
                c->global[k].l2_sectors);
    fprintf(out, "}, \"shared\": {");
    for (int k = 0; k < GPUSIM_N_TRAFFIC; k++)
        fprintf(out, "%s\"%s\": {\"requests\": %.17g, \"wavefronts\": %.17g, \"bank_conflicts\": %.17g}", k ? ", " : "",
                gpusim_traffic_names[k], c->shared[k].requests, c->shared[k].wavefronts,
                c->shared[k].wavefronts - c->shared[k].least);
    fprintf(out,
            "}, \"local\": {\"requests\": %.17g, \"bytes\": %.17g}, \"unique_bytes\": {\"read\": %.17g, \"written\": "
            "%.17g}",
            c->local_requests, c->local_bytes, c->unique_read, c->unique_written);
}

static void json_sites(FILE *out, const struct gpusim_counts *c) {
    fprintf(out, ", \"wasteful\": [");
    for (const struct gpusim_site *s = c->sites; s; s = s->next) {
        fprintf(out, "{\"file\": ");
        lk_tokenizer_json_string(out, s->file ? s->file : "");
        fprintf(out,
                ", \"line\": %u, \"ptx_line\": %u, \"bank_conflicts\": %.17g, \"sectors\": %.17g, "
                "\"sector_excess\": %.17g}%s",
                s->source_line, s->ptx_line, s->conflicts, s->sectors, s->sector_excess, s->next ? ", " : "");
    }
    fprintf(out, "]");
}

static void json_one(FILE *out, const struct gpusim_counts *c) {
    struct totals t = totals_of(c);
    fprintf(out, "{\"kernel\": ");
    lk_tokenizer_json_string(out, c->name);
    fprintf(out,
            ", \"launches\": %.17g, \"blocks\": %.17g, \"blocks_run\": %.17g, \"grid\": [%u, %u, %u], \"block\": [%u, "
            "%u, %u], \"registers\": %u, \"registers_exact\": %s, \"spill_bytes\": %u, \"static_shared\": %u, "
            "\"dynamic_shared\": %u, \"blocks_per_sm\": %u, \"occupancy_limit\": \"%s\", \"machine_instructions\": "
            "%.17g, \"instructions\": %.17g, "
            "\"active_lanes\": %.17g",
            c->launches, c->blocks, c->blocks_run, c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1],
            c->block[2], c->registers, c->registers_exact ? "true" : "false", c->spill_bytes, c->static_shared,
            c->dynamic_shared, c->blocks_per_sm, c->limit, c->machine_issued, t.issued, t.lanes_active);
    json_numbers(out, "instructions_by_class", gpusim_class_names, c->issued, GPUSIM_N_CLASSES);
    json_numbers(out, "tensor_flops", gpusim_tensor_names, c->tensor_flops, GPUSIM_N_TENSORS);
    json_traffic(out, c);
    fprintf(out,
            ", \"sector_efficiency\": %.17g, \"waves\": %.17g, \"modelled\": {\"seconds\": %.17g, \"bound\": "
            "\"%s\", \"fill\": %.17g",
            share(t.bytes, 32 * t.sectors), c->waves, c->bound_seconds, gpusim_bound_names[binding(c)],
            share(c->blocks, c->quantised_blocks));
    json_numbers(out, "by_resource", gpusim_bound_names, c->seconds, GPUSIM_N_BOUNDS);
    fprintf(out, "}");
    json_sites(out, c);
    fprintf(out, "}");
}

static void write_report(FILE *out, bool json) {
    if (json)
        fprintf(out, "{\"device\": \"A100-SXM4-80GB\", \"times\": \"modelled lower bounds, not measured\", "
                     "\"kernels\": [\n");
    for (const struct gpusim_counts *c = gpusim_all_counts(); c; c = c->next) {
        if (json) {
            json_one(out, c);
            fprintf(out, "%s\n", c->next ? "," : "");
        } else
            text_one(out, c);
    }
    if (json) fprintf(out, "]}\n");
}

char *gpusim_counts_text(const char *format) {
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out) return NULL;
    write_report(out, !strncmp(format, "json", 4));
    if (fclose(out)) {
        free(text);
        return NULL;
    }
    return text;
}

__attribute__((destructor)) static void at_exit(void) {
    const char *wanted = gpusim_settings()->report;
    if (!wanted || !gpusim_all_counts()) return;
    const char *path = wanted[4] ? wanted + 5 : NULL;
    FILE *out = path ? fopen(path, "w") : stderr;
    if (!out) {
        gpusim_say("GPUSIM_REPORT: %s: %s", path, strerror(errno));
        return;
    }
    write_report(out, !strncmp(wanted, "json", 4));
    if (path && fclose(out)) gpusim_say("GPUSIM_REPORT: %s: %s", path, strerror(errno));
    gpusim_forget();
}

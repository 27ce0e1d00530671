#include <cjson/cJSON.h>
#include <stdio.h>

#include "models/pipeline.h"
#include "tools/cli/cli.h"

static enum lk_code defaults_of(const char *name, struct lk_request *request) {
    struct lk_pipeline *pipeline;
    LK_TRY(lk_pipeline_open_configs(&pipeline, name, LK_BF16));
    lk_request_init(request, pipeline);
    lk_pipeline_close(pipeline);
    return LK_OK;
}

/* A parameter that the model does not have stands at 0. */
static const char *number_or_dash(double value, char out[32]) {
    snprintf(out, 32, value != 0 ? "%.1f" : "-", value);
    return out;
}

static void print_line(const struct lk_model_info *m, const struct lk_request *r) {
    char guidance[32], true_cfg[32];
    printf("%-15s %5d %8s %8s %5lld  %-5s %-4s  %s%s\n", m->name, r->num_inference_steps,
           number_or_dash(r->guidance_scale, guidance), number_or_dash(r->true_cfg_scale, true_cfg), (long long)r->seed,
           "bf16", m->studied ? "yes" : "", m->repository ? m->repository : "-",
           m->only_planned ? " (plan only: edits are refused)" : "");
}

static bool add_entry(cJSON *list, const struct lk_model_info *m, const struct lk_request *r) {
    cJSON *o = cJSON_CreateObject();
    if (!o || !cJSON_AddItemToArray(list, o)) {
        cJSON_Delete(o);
        return false;
    }
    bool ok = cJSON_AddStringToObject(o, "name", m->name) && cJSON_AddBoolToObject(o, "studied", m->studied) &&
              cJSON_AddBoolToObject(o, "only_planned", m->only_planned);
    ok = ok && (m->repository ? cJSON_AddStringToObject(o, "repository", m->repository)
                              : cJSON_AddNullToObject(o, "repository"));
    ok = ok && cJSON_AddNumberToObject(o, "num_inference_steps", r->num_inference_steps);
    ok = ok && (r->guidance_scale != 0 ? cJSON_AddNumberToObject(o, "guidance_scale", r->guidance_scale)
                                       : cJSON_AddNullToObject(o, "guidance_scale"));
    ok = ok && (r->true_cfg_scale != 0 ? cJSON_AddNumberToObject(o, "true_cfg_scale", r->true_cfg_scale)
                                       : cJSON_AddNullToObject(o, "true_cfg_scale"));
    ok = ok && (r->negative_prompt ? cJSON_AddStringToObject(o, "negative_prompt", r->negative_prompt)
                                   : cJSON_AddNullToObject(o, "negative_prompt"));
    return ok && cJSON_AddNumberToObject(o, "seed", (double)r->seed) && cJSON_AddStringToObject(o, "dtype", "bf16");
}

enum lk_code cli_models(const struct cli_arguments *arguments) {
    struct lk_model_info m;
    struct lk_request request;
    cJSON *list = arguments->json ? cJSON_CreateArray() : NULL;
    bool ok = list || !arguments->json;
    if (!arguments->json)
        printf("%-15s %5s %8s %8s %5s  %-5s %-5s %s\n", "model", "steps", "guidance", "true CFG", "seed", "dtype",
               "study", "repository");
    for (int i = 0; lk_model_info(i, &m) && ok; i++) {
        enum lk_code rc = defaults_of(m.name, &request);
        if (rc) {
            cJSON_Delete(list);
            return rc;
        }
        if (arguments->json)
            ok = add_entry(list, &m, &request);
        else
            print_line(&m, &request);
    }
    char *text = arguments->json && ok ? cJSON_Print(list) : NULL;
    if (text) puts(text);
    ok = ok && (text || !arguments->json);
    cJSON_free(text);
    cJSON_Delete(list);
    return ok ? LK_OK : lk_fail(LK_E_NOMEM, "models: out of memory");
}

/* Damage to files that knows their form: what is broken is mostly not noticed by the first check that looks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of ATTACK_DATABASE (SQLite, changed by statements and as bytes) and ATTACK_CONFIG (JSON), damage may be refused or
 * say nothing, but must not lead to another result. */
enum attack_form {
    ATTACK_JSON,
    ATTACK_TABLE,
    ATTACK_SAFETENSORS,
    ATTACK_PNG,
    ATTACK_JPEG,
    ATTACK_BINARY,
    ATTACK_DATABASE,
    ATTACK_CONFIG,
};

struct attack_bytes {
    uint8_t *data; /* of malloc, with a byte of room behind n */
    size_t n;
};

uint64_t attack_random(uint64_t *state);
/* Replaces the bytes by a damaged copy. The same state gives the same damage. */
void attack_mutate_database(struct attack_bytes *bytes, uint64_t *state);
void attack_mutate(struct attack_bytes *bytes, enum attack_form form, uint64_t *state);

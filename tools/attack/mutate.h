/* Damage to files that knows their form: what is broken is mostly not noticed by the first check that looks. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum attack_form { ATTACK_JSON, ATTACK_TABLE, ATTACK_SAFETENSORS, ATTACK_PNG, ATTACK_JPEG, ATTACK_BINARY };

struct attack_bytes {
    uint8_t *data; /* of malloc, with a byte of room behind n */
    size_t n;
};

uint64_t attack_random(uint64_t *state);
/* Replaces the bytes by a damaged copy. The same state gives the same damage. */
void attack_mutate(struct attack_bytes *bytes, enum attack_form form, uint64_t *state);

/* FairFace's classifier of perceived race, gender and age: torchvision's ResNet-34 with 18 outputs, in f32 on the host.
 * Kaerkkaeinen and Joo 2021, "FairFace". Its authors' file is a pickle of a state: save that as safetensors, f32, under
 * torchvision's names, once, with the authors' terms in mind; none comes with this program.
 *
 *     struct lk_fairface *net;
 *     LK_TRY(lk_fairface_open(&net, "fairface.safetensors", 0));
 *     if (!(rc = lk_fairface_chip(&image, &face, &chip))) rc = lk_fairface_classify(net, &chip, logits);
 *     lk_fairface_close(net); */
#pragma once

#include "models/face/yunet.h"

/* White, Black, Latino_Hispanic, East Asian, Southeast Asian, Indian, Middle Eastern; Male, Female; 0-2, 3-9, 10-19,
 * then tens to more than 70: a softmax over each. */
enum { LK_FAIRFACE_RACES = 7, LK_FAIRFACE_GENDERS = 2, LK_FAIRFACE_AGES = 9, LK_FAIRFACE_OUTPUTS = 18 };

struct lk_fairface;
/* "conv1.weight", "layer1.0.bn2.running_var", "fc.bias"; 18 outputs. n_threads 0: all. LK_E_BIND names the tensor that
 * is missing, unknown or does not fit. */
enum lk_code lk_fairface_open(struct lk_fairface **out, const char *path, int n_threads);
void lk_fairface_close(struct lk_fairface *net);

/* The face upright, 300 x 300, as dlib cuts it out for FairFace (get_face_chips, padding 0.25) from a picture whose
 * longest side is 800, bilinear, black beyond the picture; but placed by the centres of the eyes that YuNet finds where
 * dlib has the eyes' corners and the base of the nose: close to its chips, not equal; and a chip of more than 600 of
 * those pixels is not smoothed first, as dlib does. LK_E_INPUT: eyes in one place. */
enum lk_code lk_fairface_chip(const struct lk_image *image, const struct lk_face *face, struct lk_image *chip);
/* A chip to 224 x 224 by Pillow's bilinear, ImageNet's mean and deviation, the net. */
enum lk_code lk_fairface_classify(struct lk_fairface *net, const struct lk_image *chip,
                                  float logits[LK_FAIRFACE_OUTPUTS]);

#include "tools/gpusim/numerics/lanes.h"

gpusim_num_fn *ISA(num_arith_f32)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags);
gpusim_num_fn *ISA(num_arith_f64)(enum gpusim_num_op op, enum gpusim_num_rounding rounding, unsigned flags);
gpusim_num_fn *ISA(num_arith_half)(enum gpusim_num_op op, enum gpusim_num_type type, enum gpusim_num_rounding rounding,
                                   unsigned flags);
gpusim_num_fn *ISA(num_approx)(enum gpusim_num_op op, enum gpusim_num_type type, unsigned flags);
gpusim_num_fn *ISA(num_convert)(enum gpusim_num_type to, enum gpusim_num_type from, enum gpusim_num_rounding rounding,
                                unsigned flags);
gpusim_num_compare_fn *ISA(num_compare)(enum gpusim_num_comparison comparison, enum gpusim_num_type type,
                                        unsigned flags);
gpusim_num_compare_fn *ISA(num_testp)(enum gpusim_num_test test, enum gpusim_num_type type);
gpusim_num_mma_fn *ISA(num_mma)(const struct gpusim_num_mma *mma);

extern const struct num_table ISA(num_table);
const struct num_table ISA(num_table) = {
    ISA(num_arith_f32), ISA(num_arith_f64), ISA(num_arith_half), ISA(num_approx),
    ISA(num_convert),   ISA(num_compare),   ISA(num_testp),      ISA(num_mma),
};

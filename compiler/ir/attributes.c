/* The rows of attributes.def as a table, and what values each type of attribute has. */
#include "attributes.h"

const attribute_info ir_attributes[IR_ATTRIBUTE_COUNT] = {
#define ALWAYS true
#define CHOSEN false
#define ATTR(name, place, type, shown, meaning) {#name, place, shown, ATTRIBUTE_##type},
#include "attributes.def"
#undef ATTR
#undef CHOSEN
#undef ALWAYS
};

attribute_range ir_attribute_range(attribute_type t)
{
	switch (t) {
	case ATTRIBUTE_axis: return (attribute_range){0, IR_MAX_RANK - 1, NULL};
	case ATTRIBUTE_flag: return (attribute_range){0, 1, NULL};
	case ATTRIBUTE_natural: return (attribute_range){0, INT32_MAX, NULL};
	case ATTRIBUTE_positive: return (attribute_range){1, INT32_MAX, NULL};
	case ATTRIBUTE_combine: return (attribute_range){0, IR_COMBINE_COUNT - 1, ir_combine_names};
	case ATTRIBUTE_cache: return (attribute_range){0, IR_CACHE_COUNT - 1, ir_cache_names};
	case ATTRIBUTE_evict: return (attribute_range){0, IR_EVICT_COUNT - 1, ir_evict_names};
	case ATTRIBUTE_hint: return (attribute_range){0, IR_HINT_COUNT - 1, ir_hint_names};
	case ATTRIBUTE_rmw: return (attribute_range){0, IR_RMW_COUNT - 1, ir_rmw_names};
	case ATTRIBUTE_sem: return (attribute_range){0, IR_SEM_COUNT - 1, ir_sem_names};
	case ATTRIBUTE_scope: return (attribute_range){0, IR_SCOPE_COUNT - 1, ir_scope_names};
	case ATTRIBUTE_precision: return (attribute_range){0, IR_PRECISION_COUNT - 1, ir_precision_names};
	case ATTRIBUTE_partition: return (attribute_range){0, IR_PARTITION_COUNT - 1, ir_partition_names};
	case ATTRIBUTE_proxy: return (attribute_range){0, IR_PROXY_COUNT - 1, ir_proxy_names};
	case ATTRIBUTE_bits:
	case ATTRIBUTE_integer:
	case ATTRIBUTE_list:
	case ATTRIBUTE_text:
	case ATTRIBUTE_map: break;
	}
	return (attribute_range){INT64_MIN, INT64_MAX, NULL};
}

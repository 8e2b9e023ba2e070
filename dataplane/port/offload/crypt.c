/* A device beside the NIC seals and opens packets. Ports do not use it themselves: dataplane/crypt/ has the drivers,
 * and takes it by the name "lookaside". */
#include "dataplane/port/ethdev_private.h"

#include <rte_cryptodev.h>

static bool seals(uint8_t device, struct rte_cryptodev_info *info)
{
    struct rte_cryptodev_sym_capability_idx index = {.type = RTE_CRYPTO_SYM_XFORM_AEAD,
                                                     .algo.aead = RTE_CRYPTO_AEAD_AES_GCM};
    rte_cryptodev_info_get(device, info);
    return (info->feature_flags & RTE_CRYPTODEV_FF_HW_ACCELERATED) != 0 &&
           rte_cryptodev_sym_capability_get(device, &index) != NULL;
}

static bool crypt_has(struct ethdev_port *port, const struct rte_eth_dev_info *info, char *why)
{
    (void)port;
    (void)info;
    for (uint8_t device = 0; device < RTE_CRYPTO_MAX_DEVS; device++) {
        struct rte_cryptodev_info described;
        if (rte_cryptodev_is_valid_dev(device) && seals(device, &described)) {
            snprintf(why, CW_OFFLOAD_WHY_BYTES, "%s (%s); sealed sessions take it as the driver lookaside",
                     rte_cryptodev_name_get(device), described.driver_name);
            return true;
        }
    }
    snprintf(why, CW_OFFLOAD_WHY_BYTES,
             "DPDK sees no device that seals; causeway bench cost --encrypt measures the core");
    return false;
}

const struct ethdev_offload ethdev_offload_crypt = {.has = crypt_has};

package opensm

import (
	"slices"
	"strconv"
)

// specs are all options of OpenSM 3.3.23 with their defaults, in the order in which
// `opensm -c` writes them, and dimn_ports_file, an older name that it still reads.
var specs = []spec{
	{name: "guid", def: "0x0000000000000000", kind: u64},
	{name: "m_key", def: "0x0000000000000000", kind: u64, secret: true},
	{name: "m_key_lease_period", def: "0", kind: u16},
	{name: "m_key_protection_level", def: "0", kind: u8},
	{name: "m_key_lookup", def: "TRUE", kind: flag},
	{name: "sm_key", def: "0x0000000000000001", kind: u64, secret: true},
	{name: "sa_key", def: "0x0000000000000001", kind: u64, secret: true},
	{name: "subnet_prefix", def: "0xfe80000000000000", kind: u64},
	{name: "lmc", def: "0", kind: u8, refuses: above(7)},
	{name: "lmc_esp0", def: "FALSE", kind: flag},
	{name: "sm_sl", def: "0", kind: u8},
	{name: "packet_life_time", def: "0x12", kind: u8},
	{name: "vl_stall_count", def: "0x07", kind: u8},
	{name: "leaf_vl_stall_count", def: "0x07", kind: u8},
	{name: "head_of_queue_lifetime", def: "0x12", kind: u8},
	{name: "leaf_head_of_queue_lifetime", def: "0x10", kind: u8},
	{name: "max_op_vls", def: "5", kind: u8},
	{name: "force_link_speed", def: "15", kind: u8, refuses: numbersBut(0, 1, 2, 3, 4, 5, 6, 7, 15)},
	{name: "force_link_speed_ext", def: "31", kind: u8, refuses: numbersBut(0, 1, 2, 3, 4, 5, 6, 7, 30, 31)},
	{name: "force_link_width", def: "255", kind: u8, refuses: between(32, 254)},
	{name: "fdr10", def: "1", kind: u8, refuses: above(2)},
	{name: "subnet_timeout", def: "18", kind: u8},
	{name: "local_phy_errors_threshold", def: "0x08", kind: u8},
	{name: "overrun_errors_threshold", def: "0x08", kind: u8},
	{name: "use_mfttop", def: "TRUE", kind: flag},
	{name: "partition_config_file", def: "/etc/opensm/partitions.conf"},
	{name: "no_partition_enforcement", def: "FALSE", kind: flag},
	{name: "part_enforce", def: "both", refuses: noneOf("both", "in", "out", "off")},
	{name: "allow_both_pkeys", def: "FALSE", kind: flag},
	{name: "keep_pkey_indexes", def: "TRUE", kind: flag},
	{name: "sm_assigned_guid", def: "0x00", kind: u8},
	{name: "sweep_interval", def: "10", kind: u32},
	{name: "reassign_lids", def: "FALSE", kind: flag},
	{name: "force_heavy_sweep", def: "FALSE", kind: flag},
	{name: "sweep_on_trap", def: "TRUE", kind: flag},
	{name: "port_profile_switch_nodes", def: "FALSE", kind: flag},
	{name: "port_prof_ignore_file", def: "(null)"},
	{name: "hop_weights_file", def: "(null)"},
	{name: "port_search_ordering_file", def: "(null)"},
	{name: "routing_engine", def: "(null)"},
	{name: "avoid_throttled_links", def: "FALSE", kind: flag},
	{name: "connect_roots", def: "FALSE", kind: flag},
	{name: "use_ucast_cache", def: "FALSE", kind: flag},
	{name: "lid_matrix_dump_file", def: "(null)"},
	{name: "lfts_file", def: "(null)"},
	{name: "root_guid_file", def: "(null)"},
	{name: "cn_guid_file", def: "(null)"},
	{name: "io_guid_file", def: "(null)"},
	{name: "quasi_ftree_indexing", def: "FALSE", kind: flag},
	{name: "max_reverse_hops", def: "0", kind: u16},
	{name: "ids_guid_file", def: "(null)"},
	{name: "guid_routing_order_file", def: "(null)"},
	{name: "do_mesh_analysis", def: "FALSE", kind: flag},
	{name: "lash_start_vl", def: "0", kind: u8},
	{name: "nue_max_num_vls", def: "1", kind: u8},
	{name: "nue_include_switches", def: "FALSE", kind: flag},
	{name: "port_shifting", def: "FALSE", kind: flag},
	{name: "scatter_ports", def: "0", kind: u32},
	{name: "guid_routing_order_no_scatter", def: "FALSE", kind: flag},
	{name: "sa_db_file", def: "(null)"},
	{name: "sa_db_dump", def: "FALSE", kind: flag},
	{name: "torus_config", def: "/etc/opensm/torus-2QoS.conf"},
	{name: "sm_priority", def: "0", kind: u8, refuses: above(15)},
	{name: "ignore_other_sm", def: "FALSE", kind: flag},
	{name: "sminfo_polling_timeout", def: "10000", kind: u32},
	{name: "polling_retry_number", def: "4", kind: u32},
	{name: "honor_guid2lid_file", def: "FALSE", kind: flag},
	{name: "max_wire_smps", def: "4", kind: u32},
	{name: "max_wire_smps2", def: "4", kind: u32},
	{name: "max_smps_timeout", def: "600000", kind: u32},
	{name: "transaction_timeout", def: "200", kind: u32},
	{name: "transaction_retries", def: "3", kind: u32},
	{name: "long_transaction_timeout", def: "500", kind: u32},
	{name: "max_msg_fifo_timeout", def: "10000", kind: u32},
	{name: "single_thread", def: "FALSE", kind: flag},
	{name: "daemon", def: "FALSE", kind: flag},
	{name: "sm_inactive", def: "FALSE", kind: flag},
	{name: "babbling_port_policy", def: "FALSE", kind: flag},
	{name: "drop_event_subscriptions", def: "FALSE", kind: flag},
	{name: "ipoib_mcgroup_creation_validation", def: "TRUE", kind: flag},
	{name: "mcgroup_join_validation", def: "TRUE", kind: flag},
	{name: "use_original_extended_sa_rates_only", def: "FALSE", kind: flag},
	{name: "use_optimized_slvl", def: "FALSE", kind: flag},
	{name: "fsync_high_avail_files", def: "TRUE", kind: flag},
	{name: "perfmgr", def: "FALSE", kind: flag},
	{name: "perfmgr_redir", def: "TRUE", kind: flag},
	{name: "perfmgr_sweep_time_s", def: "180", kind: u16, refuses: zero},
	{name: "perfmgr_max_outstanding_queries", def: "500", kind: u32},
	{name: "perfmgr_ignore_cas", def: "FALSE", kind: flag},
	{name: "perfmgr_rm_nodes", def: "TRUE", kind: flag},
	{name: "perfmgr_log_errors", def: "TRUE", kind: flag},
	{name: "perfmgr_query_cpi", def: "TRUE", kind: flag},
	{name: "perfmgr_xmit_wait_log", def: "FALSE", kind: flag},
	{name: "perfmgr_xmit_wait_threshold", def: "65535", kind: u32},
	{name: "event_db_dump_file", def: "(null)"},
	{name: "event_plugin_name", def: "(null)"},
	{name: "event_plugin_options", def: "(null)", secret: true},
	{name: "node_name_map_name", def: "(null)"},
	{name: "log_flags", def: "0x03", kind: u8},
	{name: "force_log_flush", def: "FALSE", kind: flag},
	{name: "log_file", def: "/var/log/opensm.log"},
	{name: "log_max_size", def: "0", kind: u32},
	{name: "accum_log_file", def: "TRUE", kind: flag},
	{name: "per_module_logging_file", def: "/etc/opensm/per-module-logging.conf"},
	{name: "dump_files_dir", def: "/var/log/"},
	{name: "enable_quirks", def: "FALSE", kind: flag},
	{name: "no_clients_rereg", def: "FALSE", kind: flag},
	{name: "disable_multicast", def: "FALSE", kind: flag},
	{name: "exit_on_fatal", def: "TRUE", kind: flag},
	{name: "console", def: "off", refuses: noneOf("off", "local", "loopback")},
	{name: "console_port", def: "10000", kind: u16},
	{name: "qos", def: "FALSE", kind: flag},
	{name: "qos_policy_file", def: "/etc/opensm/qos-policy.conf"},
	{name: "suppress_sl2vl_mad_status_errors", def: "FALSE", kind: flag},
	{name: "qos_max_vls", def: "0", kind: u32},
	{name: "qos_high_limit", def: "-1", kind: i32, refuses: highLimit},
	{name: "qos_vlarb_high", def: "(null)"},
	{name: "qos_vlarb_low", def: "(null)"},
	{name: "qos_sl2vl", def: "(null)"},
	{name: "qos_ca_max_vls", def: "0", kind: u32},
	{name: "qos_ca_high_limit", def: "-1", kind: i32, refuses: highLimit},
	{name: "qos_ca_vlarb_high", def: "(null)"},
	{name: "qos_ca_vlarb_low", def: "(null)"},
	{name: "qos_ca_sl2vl", def: "(null)"},
	{name: "qos_sw0_max_vls", def: "0", kind: u32},
	{name: "qos_sw0_high_limit", def: "-1", kind: i32, refuses: highLimit},
	{name: "qos_sw0_vlarb_high", def: "(null)"},
	{name: "qos_sw0_vlarb_low", def: "(null)"},
	{name: "qos_sw0_sl2vl", def: "(null)"},
	{name: "qos_swe_max_vls", def: "0", kind: u32},
	{name: "qos_swe_high_limit", def: "-1", kind: i32, refuses: highLimit},
	{name: "qos_swe_vlarb_high", def: "(null)"},
	{name: "qos_swe_vlarb_low", def: "(null)"},
	{name: "qos_swe_sl2vl", def: "(null)"},
	{name: "qos_rtr_max_vls", def: "0", kind: u32},
	{name: "qos_rtr_high_limit", def: "-1", kind: i32, refuses: highLimit},
	{name: "qos_rtr_vlarb_high", def: "(null)"},
	{name: "qos_rtr_vlarb_low", def: "(null)"},
	{name: "qos_rtr_sl2vl", def: "(null)"},
	{name: "congestion_control", def: "FALSE", kind: flag},
	{name: "cc_key", def: "0x0000000000000000", kind: u64, secret: true},
	{name: "cc_max_outstanding_mads", def: "500", kind: u32},
	{name: "cc_sw_cong_setting_control_map", def: "0x0"},
	{name: "cc_sw_cong_setting_victim_mask", def: "0x0000000000000000000000000000000000000000000000000000000000000000"},
	{name: "cc_sw_cong_setting_credit_mask", def: "0x0000000000000000000000000000000000000000000000000000000000000000"},
	{name: "cc_sw_cong_setting_threshold", def: "0x00"},
	{name: "cc_sw_cong_setting_packet_size", def: "0"},
	{name: "cc_sw_cong_setting_credit_starvation_threshold", def: "0x00"},
	{name: "cc_sw_cong_setting_credit_starvation_return_delay", def: "0:0"},
	{name: "cc_sw_cong_setting_marking_rate", def: "0"},
	{name: "cc_ca_cong_setting_port_control", def: "0x0000"},
	{name: "cc_ca_cong_setting_control_map", def: "0x0000"},
	{name: "cc_ca_cong_setting_ccti_timer", def: "0 0", kind: perLevel},
	{name: "cc_ca_cong_setting_ccti_increase", def: "0 0", kind: perLevel},
	{name: "cc_ca_cong_setting_trigger_threshold", def: "0 0", kind: perLevel},
	{name: "cc_ca_cong_setting_ccti_min", def: "0 0", kind: perLevel},
	{name: "cc_cct", def: "(null)"},
	{name: "prefix_routes_file", def: "/etc/opensm/prefix-routes.conf"},
	{name: "consolidate_ipv6_snm_req", def: "FALSE", kind: flag},
	{name: "log_prefix", def: "(null)"},
	{name: "dimn_ports_file", def: null},
}

// known finds an option by name.
var known = func() map[string]*spec {
	m := make(map[string]*spec, len(specs))
	for i := range specs {
		m[specs[i].name] = &specs[i]
	}
	return m
}()

// zero refuses 0.
func zero(v string) bool {
	n, err := strconv.ParseUint(v, 0, 64)
	return err == nil && n == 0
}

// highLimit refuses what PortInfo.VLHighLimit does not hold.
func highLimit(v string) bool { n := limit(v); return n != noLimit && n > 255 }

// noneOf refuses all but some words.
func noneOf(words ...string) func(string) bool {
	return func(v string) bool { return !slices.Contains(words, v) }
}

// numbersBut refuses all numbers but some.
func numbersBut(good ...uint64) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseUint(v, 0, 64)
		return err == nil && !slices.Contains(good, n)
	}
}

// between refuses the numbers from low to high.
func between(low, high uint64) func(string) bool {
	return func(v string) bool {
		n, err := strconv.ParseUint(v, 0, 64)
		return err == nil && low <= n && n <= high
	}
}

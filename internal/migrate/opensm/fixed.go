package opensm

// fixed is what becomes of an option whatever value it has, unless that is OpenSM's default.
type fixed struct {
	verdict Verdict
	why     string
}

// closed are options that only NVIDIA's closed OpenSM has.
var closed = map[string]string{
	"m_key_per_port":                      "every port has an M_Key of its own here anyhow (docs/keys.md)",
	"m_key_per_port_seed":                 "keys are derived from the master secret in the data directory (docs/keys.md)",
	"vs_key":                              "vendor-specific attributes are neither read nor written, and get no key",
	"vs_key_enable":                       "vendor-specific attributes are neither read nor written, and get no key",
	"vs_key_lease_period":                 "vendor-specific attributes are neither read nor written, and get no key",
	"cc_key_enable":                       "congestion control is not configured",
	"n2n_key":                             "keys between nodes are not configured",
	"n2n_key_enable":                      "keys between nodes are not configured",
	"am_key_enable":                       "aggregation managers are not configured",
	"pm_key_enable":                       "keys of performance management are not configured",
	"periodic_key_update":                 "ibwarden keys rotate gives ports new keys",
	"key_update_period":                   "ibwarden keys rotate gives ports new keys",
	"allowed_sm_guids":                    "trusted-sm names the managers that count",
	"topo_config":                         "the list of cables does this: ibwarden topology",
	"topo_config_enabled":                 "the list of cables does this: ibwarden topology",
	"topo_config_file":                    "the list of cables does this: ibwarden topology",
	"tenants_policy_enabled":              "virtual ports are not managed; aliases in the policy name the GUIDs of virtual functions",
	"tenants_policy_file":                 "virtual ports are not managed; aliases in the policy name the GUIDs of virtual functions",
	"virt_enable":                         "virtual ports are not managed; aliases in the policy name the GUIDs of virtual functions",
	"sa_check_sgid_spoofing":              "subnet administration goes by the port that asks, always (docs/sa.md)",
	"sa_rate_threshold":                   "the queries of a port are bounded, always (docs/sa.md)",
	"sa_enhanced_trust_model":             "what a port may ask is always restricted, and refused with an answer (docs/sa.md)",
	"sa_etm_allow_untrusted_guidinfo_rec": "what a port may ask is always restricted (docs/sa.md)",
	"master_sm_lid":                       "settings has master_sm_lid too, in the policy (docs/managers.md)",
	"ar_mode":                             "adaptive routing is not configured",
	"ar_sl_mask":                          "adaptive routing is not configured",
	"shield_mode":                         "adaptive routing is not configured",
	"pfrn_sl":                             "adaptive routing is not configured",
	"sharp_enabled":                       "aggregation in switches is not configured",
	"mepi_cache_enabled":                  "vendor-specific attributes are neither read nor written",
	"hm_unhealthy_ports_checks":           "a port whose link flaps is followed once in 30 s; ibwarden drain takes a switch out of the routes",
	"hm_ports_health_policy_file":         "ibwarden drain takes a switch out of the routes",
	"rtr_aguid_enable":                    "routers are not configured",
	"calculate_missing_routes":            "routes reach every port, or are not written",
}

const (
	whyWindow    = "the number of requests under way, their time-outs and their repetitions follow what the fabric does"
	whyMFT       = "multicast tables are limited by MulticastFDBTop wherever a switch has it"
	whySweep     = "a trap has the port that it is about looked at, and what is found is followed"
	whyLash      = "it is about the routing engine lash, which ibwarden does not have"
	whyNue       = "it is about the routing engine nue, which ibwarden does not have"
	whyBalance   = "how routes are spread over links is up to the routing engine (docs/dev/routing-engines.md)"
	whyLevels    = "levels of switches are found in the graph"
	whyLog       = "the log goes to standard error, and from there to the journal (docs/logs.md)"
	whyDump      = "ibwarden show, snapshot and export print and keep what OpenSM dumps"
	whyPerf      = "counters are read round robin and exported, with the 64-bit counters where a port has them (docs/metrics.md)"
	whyPlugin    = "no code is loaded into the manager; --webhook posts alarms, and `ibwarden show events` follows the log of events"
	whyCC        = "congestion control is not configured; what devices hold of it stays as it is"
	whyCCOff     = "it says how to configure congestion control, which is FALSE"
	whyValidated = "joins are always checked against the group, and groups against the partition (docs/routing.md)"
	whyConsole   = "ibwarden's commands ask the service over its socket; there is no console without a password"
	whyThreads   = "it is about OpenSM's own threads and queues"
)

// fixedOptions have one answer for every value but OpenSM's default.
var fixedOptions = map[string]fixed{
	"m_key_lookup":                        {NotNeeded, "keys of each port are kept in the data directory"},
	"fdr10":                               {NotPossible, "vendor-specific attributes are neither read nor written: FDR10 stays as devices have it"},
	"use_mfttop":                          {NotNeeded, whyMFT},
	"keep_pkey_indexes":                   {NotNeeded, "a P_Key keeps its index as long as the port has it"},
	"sm_assigned_guid":                    {NotPossible, "ibwarden makes up no GUIDs; aliases in the policy state them"},
	"reassign_lids":                       {NotNeeded, "a port keeps its LID unless another one has it too"},
	"force_heavy_sweep":                   {NotNeeded, "every table is read back within --drift-period anyhow"},
	"sweep_on_trap":                       {NotPossible, whySweep},
	"port_profile_switch_nodes":           {NotPossible, whyBalance},
	"avoid_throttled_links":               {NotPossible, "links count alike, whatever their width and speed are at the moment"},
	"connect_roots":                       {NotNeeded, "routes reach every port, switches at the top included, and are judged before they are written"},
	"use_ucast_cache":                     {NotNeeded, "only what a change concerns is computed and written again"},
	"quasi_ftree_indexing":                {NotNeeded, "ftree takes trees that are uneven or broken"},
	"max_reverse_hops":                    {NotNeeded, "ftree takes hosts at any level, and every pair of ports has a route"},
	"do_mesh_analysis":                    {NotNeeded, whyLash},
	"lash_start_vl":                       {NotNeeded, whyLash},
	"nue_max_num_vls":                     {NotNeeded, whyNue},
	"nue_include_switches":                {NotNeeded, whyNue},
	"port_shifting":                       {NotPossible, whyBalance},
	"scatter_ports":                       {NotPossible, whyBalance},
	"guid_routing_order_no_scatter":       {NotPossible, whyBalance},
	"sa_db_dump":                          {NotNeeded, "what hosts registered is kept in the state file"},
	"ignore_other_sm":                     {NotNeeded, "only managers count that --trusted-sm names or that share the secret"},
	"sminfo_polling_timeout":              {NotNeeded, "a manager that does not share the secret is polled once a second, three times; --master-timeout is for those that do"},
	"polling_retry_number":                {NotNeeded, "a manager that does not share the secret is polled once a second, three times; --master-timeout is for those that do"},
	"honor_guid2lid_file":                 {NotNeeded, "the state file is always honoured, and ports that are up keep the LIDs that they have"},
	"max_wire_smps2":                      {NotNeeded, whyWindow},
	"max_smps_timeout":                    {NotNeeded, whyWindow},
	"transaction_timeout":                 {NotNeeded, whyWindow},
	"transaction_retries":                 {NotNeeded, whyWindow},
	"long_transaction_timeout":            {NotNeeded, whyWindow},
	"max_msg_fifo_timeout":                {NotNeeded, whyThreads},
	"single_thread":                       {NotNeeded, whyThreads},
	"daemon":                              {NotNeeded, "systemd runs ibwarden as a service (docs/install.md)"},
	"sm_inactive":                         {NotPossible, "a manager that runs takes part; audit, prove and snapshot look at a fabric without managing it"},
	"babbling_port_policy":                {NotPossible, "no port is taken down because of its traps; a link that flaps is followed once in 30 s"},
	"drop_event_subscriptions":            {NotPossible, "a subscription ends when its port is gone for good, or unsubscribes"},
	"ipoib_mcgroup_creation_validation":   {NotPossible, whyValidated},
	"mcgroup_join_validation":             {NotPossible, whyValidated},
	"use_original_extended_sa_rates_only": {NotPossible, "paths say the rate that they have; rate_limit of a partition limits it"},
	"use_optimized_slvl":                  {NotNeeded, "only SL-to-VL tables that differ are written"},
	"suppress_sl2vl_mad_status_errors":    {NotNeeded, "only SL-to-VL tables that differ are written"},
	"fsync_high_avail_files":              {NotPossible, "what is kept is always synced to the disk"},
	"perfmgr_redir":                       {NotNeeded, whyPerf},
	"perfmgr_max_outstanding_queries":     {NotNeeded, whyPerf},
	"perfmgr_rm_nodes":                    {NotNeeded, whyPerf},
	"perfmgr_log_errors":                  {NotNeeded, whyPerf},
	"perfmgr_query_cpi":                   {NotNeeded, whyPerf},
	"perfmgr_xmit_wait_log":               {NotNeeded, whyPerf},
	"perfmgr_xmit_wait_threshold":         {NotNeeded, whyPerf},
	"event_db_dump_file":                  {NotPossible, whyPlugin},
	"event_plugin_name":                   {NotPossible, whyPlugin},
	"event_plugin_options":                {NotPossible, whyPlugin},
	"force_log_flush":                     {NotNeeded, whyLog},
	"log_file":                            {NotNeeded, whyLog},
	"log_max_size":                        {NotNeeded, whyLog},
	"accum_log_file":                      {NotNeeded, whyLog},
	"log_prefix":                          {NotNeeded, whyLog},
	"dump_files_dir":                      {NotNeeded, whyDump},
	"enable_quirks":                       {NotPossible, "there are no switches for single kinds of hardware"},
	"no_clients_rereg":                    {NotNeeded, "hosts are asked to register again only where nothing is known of what they registered"},
	"disable_multicast":                   {NotPossible, "subnet administration always serves multicast groups"},
	"exit_on_fatal":                       {NotNeeded, "two ports with one GUID are reported, and get the default partition at the most"},
	"console":                             {NotNeeded, whyConsole},
	"console_port":                        {NotNeeded, whyConsole},
	"congestion_control":                  {NotPossible, whyCC},
	"cc_key":                              {NotPossible, whyCC},
	"cc_max_outstanding_mads":             {NotPossible, whyCC},
	"consolidate_ipv6_snm_req":            {NotPossible, "every group has a multicast LID of its own"},
}

// defaultsMatter are options at whose default OpenSM does something else than ibwarden.
var defaultsMatter = []Default{
	{"routing_engine", "", "OpenSM routes with minhop, whose routes can deadlock where the cabling has loops; ibwarden's default is updn, which cannot (routing: minhop keeps it)"},
	{"sa_key", "", "OpenSM's is 1, which everybody knows; ibwarden derives one from its master secret (ibwarden keys export shows it)"},
	{"m_key", "", "OpenSM sets no M_Key, so that every host can write to every port; ibwarden gives each port a key of its own"},
	{"head_of_queue_lifetime", "", "OpenSM's is 0x12, 1.1 s; ibwarden's default is 15, 134 ms (docs/settings.md says why)"},
	{"leaf_head_of_queue_lifetime", "", "OpenSM's is 0x10, 268 ms; ibwarden's default is 13, 34 ms (docs/settings.md says why)"},
	{"max_wire_smps", "", "OpenSM has 4 requests under way; ibwarden up to 128 on an adapter, fewer where the fabric loses them (max-smps: 4 keeps it)"},
	{"ignore_other_sm", "", "OpenSM counts every manager that shows its SM_Key; for ibwarden only those count that trusted-sm names or that share the secret"},
	{"console", "", "there is no console: ibwarden's commands ask the service"},
}

package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// examples are those in the help of every command, by its path without the name of
// the program. A line that does not begin with a remark is a command; policies and
// snapshots are those of the examples that come with the program.
var examples = map[string]string{
	"": `# what is open on the fabric that this host is connected to; nothing is written
ibwarden doctor
ibwarden audit --fabric umad
# serve a fabric to try things on, and bring it up
ibwarden sim --socket demo &
ibwarden run --once --fabric ibsim:demo --policy tenants.yaml`,
	"run": `# the demonstration fabric, until the first verdict
ibwarden run --once --fabric sim
# manage the fabric behind an adapter; SIGHUP reads the policy again
ibwarden run --fabric umad:mlx5_0/1 --policy tenants.yaml --data /var/lib/ibwarden
# together with an OpenSM, at a higher priority
ibwarden run --fabric umad --policy tenants.yaml --priority 14 --sm-key 1 --trusted-sm 0x0002c90300a1b2c3`,
	"demo": `ibwarden demo
# at a port to which ssh -L leads
ibwarden demo --listen 127.0.0.1:8443`,
	"run config":        `ibwarden run config check /etc/ibwarden/ibwarden.yaml`,
	"run config check":  `ibwarden run config check /etc/ibwarden/ibwarden.yaml`,
	"run config schema": `ibwarden run config schema`,
	"plan": `ibwarden plan --fabric ibsim:demo --policy moved.yaml
ibwarden plan --fabric umad --policy moved.yaml --json`,
	"apply": `ibwarden apply --fabric ibsim:demo --policy moved.yaml
# the group storage first, then 50 hosts at a time; later undo the change
ibwarden apply --fabric umad --policy moved.yaml --yes --canary storage --batch 50
ibwarden apply --fabric umad --rollback --yes`,
	"show": `ibwarden show nodes --fabric umad`,
	"show shadow": `# beside another manager: first record, then report
ibwarden run --read-only --fabric umad --policy tenants.yaml --data /var/lib/ibwarden
ibwarden show shadow --data /var/lib/ibwarden --since 30d --html month.html`,
	"show nodes": `ibwarden show nodes --fabric umad`,
	"show ports": `ibwarden show ports --fabric umad`,
	"show topology": `ibwarden show topology --fabric umad > fabric.topology
ibwarden show topology --format slurm > /etc/slurm/topology.conf`,
	"show links":  `ibwarden show links --fabric sim:fattree,radix=12,levels=2`,
	"show lids":   `ibwarden show lids --fabric umad --json`,
	"show routes": `ibwarden show routes --fabric ibsim:demo`,
	"show routing": `ibwarden show routing --fabric umad --pattern shift,tenant
# the routing of another manager, read earlier
ibwarden show routing --snapshot fabric.snap --json`,
	"show pkeys":       `ibwarden show pkeys --fabric umad --json`,
	"show settings":    `ibwarden show settings --fabric umad`,
	"show aliases":     `ibwarden show aliases --fabric umad`,
	"show diagnostics": `ibwarden show diagnostics --fabric umad`,
	"show partitions":  `ibwarden show partitions --fabric umad`,
	"device get": `ibwarden device get red-1 PortInfo --fabric umad --data /var/lib/ibwarden
# port 3 of a switch; the second block of its P_Key table; the bytes
ibwarden device get leaf-1:3 PKeyTable 1 --fabric umad
ibwarden device get leaf-1 SwitchInfo --snapshot fabric.snap --raw`,
	"device report": `ibwarden device report --fabric umad
ibwarden device report --snapshot now.snap --json`,
	"device set": `ibwarden device set leaf-1:3 PortInfo PKeyViolations=0 --fabric umad --data /var/lib/ibwarden
ibwarden device set leaf-1:3 PortCounters all=0 --fabric umad`,
	"topology": `ibwarden topology learn --fabric umad --cables cables.topology
ibwarden topology diff --fabric umad --cables cables.topology`,
	"topology learn": `ibwarden topology learn --fabric umad --cables cables.topology`,
	"topology show":  `ibwarden topology show --cables cables.topology`,
	"topology diff":  `ibwarden topology diff --fabric umad --cables cables.topology`,
	"topology accept": `# accept the host that was moved to port 7 of leaf-2
ibwarden topology accept leaf-2:7 --fabric umad --cables cables.topology`,
	"device led": `ibwarden device led on leaf-1:5 --fabric umad --data /var/lib/ibwarden
ibwarden device led off leaf-1:5 --fabric umad --data /var/lib/ibwarden`,
	"device led on":   `ibwarden device led on leaf-1:5 --fabric umad --data /var/lib/ibwarden`,
	"device led show": `ibwarden device led show red-1 --fabric umad --data /var/lib/ibwarden`,
	"device led off":  `ibwarden device led off leaf-1:5 --fabric umad --data /var/lib/ibwarden`,
	"keys":            `ibwarden keys show --data /var/lib/ibwarden`,
	"keys show":       `ibwarden keys show --data /var/lib/ibwarden`,
	"keys rotate":     `ibwarden keys rotate --all --data /var/lib/ibwarden`,
	"keys signer":     `ibwarden keys signer --data /var/lib/ibwarden > allowed_signers`,
	"keys export": `# for a fabric that goes back to OpenSM
ibwarden keys export /var/cache/opensm --format opensm --data /var/lib/ibwarden`,
	"keys exec": `ibwarden keys exec -- iblinkinfo
# the counters of a port back to zero
ibwarden keys exec --write -- perfquery -R 17 3`,
	"keys import":    `ibwarden keys import /var/cache/opensm/guid2mkey --neighbors /var/cache/opensm/neighbors --data /var/lib/ibwarden`,
	"keys recover":   `ibwarden keys recover --fabric umad --data /var/lib/ibwarden`,
	"policy":         `ibwarden policy check tenants.yaml`,
	"policy check":   `ibwarden policy check /etc/opensm/partitions.conf`,
	"policy schema":  `ibwarden policy schema >policy.schema.json`,
	"policy convert": `ibwarden policy convert /etc/opensm/partitions.conf`,
	"sim": `# serve the demonstration fabric, with adapters for sim exec
ibwarden sim --socket demo --devices
# a generated fabric, with what clients send and get in a file for Wireshark
ibwarden sim fattree,radix=12,levels=2 --socket big --capture big.pcapng
# run a scenario instead
ibwarden sim --script scenarios/four-queue-pairs.ibs`,
	"sim exec": `ibwarden sim exec --socket demo --node blue-1 -- ibstat
ibwarden sim exec --socket demo -- ibwarden run --fabric umad --policy tenants.yaml --data data`,
	"sim guest": `# two Linux machines in the places of hosts of ibwarden sim --socket demo
ibwarden sim guest --socket demo --node red-1 --node red-2
# the console of one, with Debian's OpenSM in it
ibwarden sim guest --socket demo --node mgmt-1 --package opensm`,
	"sim guest exec": `ibwarden sim guest exec --socket demo --node red-1 -- ibstat`,
	"sim guest cp": `ibwarden sim guest cp --socket demo --node red-1 test.sh :/root/test.sh
ibwarden sim guest cp --socket demo --node red-1 :/var/log/messages red-1.log`,
	"sim guest list": `ibwarden sim guest list --socket demo`,
	"sim guest stop": `ibwarden sim guest stop --socket demo --node red-1`,
	"show adapters":  `ibwarden show adapters`,
	"doctor": `ibwarden doctor
# this host only, for a program
ibwarden doctor --host-only --json
ibwarden doctor --fabric umad:mlx5_0/1`,
	"snapshot": `ibwarden snapshot --fabric umad -o now.snap
ibwarden audit --snapshot now.snap
# a file that can be handed on
ibwarden snapshot --anonymize --snapshot now.snap -o other.snap`,
	"snapshot diff": `ibwarden snapshot diff before.snap after.snap`,
	"prove": `# who can talk, by the tables of the devices
ibwarden prove --fabric umad
# whether a policy keeps tenants apart, from a snapshot
ibwarden prove --snapshot now.snap --policy tenants.yaml
# for an auditor, who checks it without ibwarden
ibwarden prove --fabric umad --policy tenants.yaml --certificate fabric.cert`,
	"trace": `ibwarden trace red-1 blue-4 --fabric umad --pkey 0x8010
# computed, and sent through a simulated fabric, hop by hop
ibwarden trace red-1 red-2 --snapshot now.snap --packet`,
	"why": `ibwarden why red-1 blue-4 --fabric umad
# with the names that a policy gives to partitions
ibwarden why red-1 red-2 --snapshot now.snap --policy tenants.yaml`,
	"show reach": `ibwarden show reach red-1 --fabric umad
ibwarden show reach red-1 --snapshot now.snap --policy tenants.yaml --json`,
	"audit": `ibwarden audit --fabric umad
# against the policy, for hosts whose root is not trusted; status 1 on any finding
ibwarden audit --snapshot now.snap --policy tenants.yaml --profile tenant --fail-on low`,
	"tenant":        `ibwarden tenant create red --keys 0x0100-0x01ff`,
	"tenant list":   `ibwarden tenant list`,
	"tenant show":   `ibwarden tenant show red`,
	"tenant create": `ibwarden tenant create red --keys 0x0100-0x01ff --partitions 16 --changes-per-minute 600`,
	"tenant set":    `ibwarden tenant set red --partitions 32 --why growth`,
	"tenant delete": `ibwarden tenant delete red`,
	"port": `ibwarden port assign --tenant red 0x0002c90300a1b2c3
ibwarden port list --tenant red`,
	"port list":    `ibwarden port list --tenant red`,
	"port show":    `ibwarden port show 0x0002c90300a1b2c3`,
	"port assign":  `ibwarden port assign --tenant red 0x0002c90300a1b2c3 0x0002c90300a1b2c4`,
	"port offer":   `ibwarden port offer --tenant blue 0x0002c90300a1b2c3`,
	"port move":    `ibwarden port move --tenant blue --into lab=full 0x0002c90300a1b2c3`,
	"port release": `ibwarden port release 0x0002c90300a1b2c3 --wait`,
	"port pool": `ibwarden port pool assign --tenant red 0x0002c90300b00000-0x0002c90300b0ffff
ibwarden port pool list`,
	"port pool list":    `ibwarden port pool list`,
	"port pool assign":  `ibwarden port pool assign --tenant red 0x0002c90300b00000-0x0002c90300b0ffff`,
	"port pool release": `ibwarden port pool release 0x0002c90300b00000`,
	"drain":             `ibwarden drain spine-1 --why fan-2 --wait`,
	"device":            `ibwarden device get leaf-1 SwitchInfo --fabric umad`,
	"store":             `ibwarden store backup ibwarden.backup`,
	"drain end":         `ibwarden drain end spine-1`,
	"drain list":        `ibwarden drain list`,
	"show matrix": `ibwarden show matrix
# how two tenants stand to each other
ibwarden show matrix red blue`,
	"show console": `ibwarden show console
# as a tenant, on another machine
ibwarden show console --server https://fabric.example:8443 --token-file red.token`,
	"show sweeps": `ibwarden show sweeps --limit 5 --json`,
	"partition": `ibwarden partition create training --member 0x0002c90300a1b2c3=full
ibwarden partition list`,
	"partition list":        `ibwarden partition list --server https://manager:8443 --token-file red.token`,
	"partition show":        `ibwarden partition show training`,
	"partition create":      `ibwarden partition create training --pkey 0x0100 --tenant red --wait`,
	"partition set":         `ibwarden partition set training --sl 2`,
	"partition delete":      `ibwarden partition delete 0x0100 --dry-run`,
	"partition member":      `ibwarden partition member add training 0x0002c90300a1b2c3=full`,
	"partition member list": `ibwarden partition member list training`,
	"partition member add":  `ibwarden partition member add training 0x0002c90300a1b2c3=full 0x0002c90300a1b2c4=limited --wait`,
	"partition member set": `# these two, and no others
ibwarden partition member set training 0x0002c90300a1b2c3=full 0x0002c90300a1b2c4=limited`,
	"partition member refuse": `ibwarden partition member list training --state waiting
ibwarden partition member refuse training 0x0002c90300a1b2c3`,
	"partition member remove": `ibwarden partition member remove training 0x0002c90300a1b2c3 --why drained`,
	"tenant token":            `ibwarden tenant token create --tenant red`,
	"tenant token list":       `ibwarden tenant token list --tenant red`,
	"tenant token create": `ibwarden tenant token create --tenant red --note scheduler --expires-in 720h --output red.token
# in the store of a service that does not run
ibwarden tenant token create --tenant provider --data /var/lib/ibwarden
# a client certificate instead
ibwarden tenant token create --tenant red --certificate red.pem`,
	"tenant token delete":     `ibwarden tenant token delete tok-0123456789ab`,
	"history":                 `ibwarden history list`,
	"history list":            `ibwarden history list --limit 5`,
	"history show":            `ibwarden history show 12`,
	"history decisions":       `ibwarden history decisions --refused`,
	"history verify":          `ibwarden history verify`,
	"history export":          `ibwarden history export >audit.jsonl`,
	"history accept-restored": `ibwarden history accept-restored --why restored-from-backup`,
	"rollback": `# what it would change, and then only red's part of it
ibwarden rollback 12 --dry-run
ibwarden rollback 12 --tenant red --why mistake`,
	"migrate": `ibwarden migrate opensm`,
	"migrate opensm": `# what becomes of the OpenSM of this machine; nothing is written
ibwarden migrate opensm
# of a copy of its directory, into ibwarden's
ibwarden migrate opensm ./copy --output /etc/ibwarden --write-data /var/lib/ibwarden`,
	"show managers": `ibwarden show managers --fabric umad`,
	"handover": `# who would take it, and then do it
ibwarden handover --dry-run
ibwarden handover --to mgmt-2 --why upgrade`,
	"approval":      `ibwarden approval list`,
	"approval list": `ibwarden approval list`,
	"approval approve": `ibwarden approval approve a17
# ports that were offered to your tenant, into a partition of yours
ibwarden approval approve a17 --into lab=full`,
	"approval reject": `ibwarden approval reject a17`,
	"status": `ibwarden status
# for a program: what is wrong, whom it concerns and what to try
ibwarden status --json`,
	"top": `ibwarden top
# read again every 10 s
ibwarden top --interval 10s
# once, for a file
ibwarden top --server unix:ibwarden.sock >now.txt`,
	"show events": `ibwarden show events
# each as it happens, as JSON lines
ibwarden show events --follow --json`,
	"store backup":  `ibwarden store backup ibwarden.backup`,
	"store restore": `ibwarden store restore ibwarden.backup --data /var/lib/ibwarden`,
	"policy export": `ibwarden policy export >policy.yaml`,
	"version":       `ibwarden version --json`,
	"completion": `# for this shell
source <(ibwarden completion bash)`,
	"completion bash":       `source <(ibwarden completion bash)`,
	"completion zsh":        `ibwarden completion zsh >"${fpath[1]}/_ibwarden"`,
	"completion fish":       `ibwarden completion fish >~/.config/fish/completions/ibwarden.fish`,
	"completion powershell": `ibwarden completion powershell | Out-String | Invoke-Expression`,
	"help":                  `ibwarden help audit`,
}

// addExamples puts the examples into the help of a command and of those below it.
func addExamples(c *cobra.Command) {
	name := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), c.Root().Name()), " ")
	if text := examples[name]; text != "" {
		c.Example = "  " + strings.ReplaceAll(text, "\n", "\n  ")
	}
	for _, sub := range c.Commands() {
		addExamples(sub)
	}
}

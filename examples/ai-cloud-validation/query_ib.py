#!/usr/bin/env python3
"""Step script for NVIDIA's ai-cloud-validation: what ibwarden knows for SDN04-04 and SDN04-05.

    query_ib.py isolation [SITE]    for IbTenantIsolationCheck
    query_ib.py keys [SITE]         for IbKeysConfiguredCheck

The service is asked that IBWARDEN_SERVER names, with IBWARDEN_TOKEN if it wants one. Prints one JSON
document; the exit status is 0 if the step has an answer. Partitions count only while the proof holds
that the fabric keeps them apart. A key that ibwarden cannot read is null, never true.
"""

import json
import os
import subprocess
import sys

# The results of ibwarden audit, as the check wants them.
CONFIGURED = {"pass": True, "fail": False, "not readable": None}


def ibwarden(*args):
    """The document that a command prints. Status 1 is an answer too: the verdict does not hold."""
    done = subprocess.run([os.environ.get("IBWARDEN", "ibwarden"), *args, "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"ibwarden {' '.join(args)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def partitions():
    return [
        {"name": p["name"], "partition_key": p["pkey"], "tenant_id": p["owner"], "status": "Ready"}
        for p in ibwarden("partition", "list")["partitions"]
    ]


def isolation():
    status = ibwarden("status")["status"]
    if not status["holds"]:
        raise RuntimeError(f"the verdict on the fabric is {status['verdict']}")
    found = partitions()
    if not found:
        return {"skipped": True, "skip_reason": "there are no partitions"}
    return {"partitions_checked": len(found), "partitions": found}


def keys():
    lines = ibwarden("audit", "--criteria", "sdn04")["criteria"]
    return {
        "partitions_with_pkey": sum(1 for p in partitions() if p["partition_key"]),
        "keys": {
            c["line"].removeprefix("SDN04-05 "): {"configured": CONFIGURED[c["result"]], "source": "ibwarden", "detail": c["evidence"]}
            for c in lines
            if c["line"].startswith("SDN04-05 ")
        },
    }


def main():
    steps = {"isolation": isolation, "keys": keys}
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in steps:
        sys.exit(__doc__)
    out = {"success": False, "platform": "ibwarden", "site_id": sys.argv[2] if len(sys.argv) == 3 else ""}
    try:
        out |= steps[sys.argv[1]]()
        out["success"] = True
    except (RuntimeError, OSError, ValueError, KeyError) as e:
        out["error"] = str(e)
    print(json.dumps(out, indent=2))
    return 0 if out["success"] else 1


if __name__ == "__main__":
    sys.exit(main())

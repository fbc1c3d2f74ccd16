(** The fabric that a certificate is about, what its hosts can do to it, and what the checker
    promises. Who wants to know what yes means reads this file; Sound.v has the proof. *)

From Coq Require Import List NArith Bool.
From Verify Require Import Checker.
Import ListNotations.
Local Open Scope N_scope.

(** * The fabric *)

(** What management writes set: of an external port of a switch whether it checks P_Keys and
    filters raw packets, and its table; the table of port 0; the M_Key of a switch. *)
Record config := {
  on_in : place -> bool;
  on_out : place -> bool;
  raw_on_in : place -> bool;
  raw_on_out : place -> bool;
  table : place -> list key;
  key_of : N -> N;
  protect_of : N -> N;
  lease_of : N -> N }.

(** What they do not set: cables, states of links, and what switches can do. *)
Record fabric := {
  cabled : place -> place -> Prop;
  state_of : place -> N;
  entries_of : N -> N;
  can_in : N -> bool;
  can_out : N -> bool;
  raw_can_in : N -> bool;
  raw_can_out : N -> bool }.

(** A packet has a P_Key or is raw. Of all else that it carries (addresses, LIDs, Q_Key, the
    port that it names as its source) nothing is assumed: a host forges what it likes. *)
Inductive packet := Raw | Keyed (k : key).

Section Fabric.
Variable F : facts.
Variable W : fabric.

(** An external port of one of the switches that the facts name. *)
Definition external (x : place) : Prop := exists p, In p (ports F) /\ p_at p = x.

(** A port of anything else: of a host, named in the facts or not. *)
Definition of_host (x : place) : Prop := forall d, In d (devices F) -> d_guid d <> fst x.

(** P_Keys match where the partition is the same, is not 0, and one of the two is a full member. *)
Definition matches (a b : key) : Prop :=
  base a = base b /\ base a <> 0 /\ (full a = true \/ full b = true).

Definition in_table (k : key) (t : list key) : Prop := exists x, In x t /\ matches x k.

(** In the states Down and Initialize no data packet passes a link. *)
Definition data_passes (x : place) : Prop := state_of W x <> 1 /\ state_of W x <> 2.

(** A switch port takes a packet from its link, and gives one to its link. *)
Definition takes (c : config) (x : place) (m : packet) : Prop :=
  external x /\ data_passes x /\
  match m with
  | Raw => raw_can_in W (fst x) && raw_on_in c x = false
  | Keyed k => entries_of W (fst x) <> 0 -> can_in W (fst x) && on_in c x = true -> in_table k (table c x)
  end.

Definition gives (c : config) (x : place) (m : packet) : Prop :=
  external x /\ data_passes x /\
  match m with
  | Raw => raw_can_out W (fst x) && raw_on_out c x = false
  | Keyed k => entries_of W (fst x) <> 0 -> can_out W (fst x) && on_out c x = true -> in_table k (table c x)
  end.

(** [arrives c a m b]: a packet [m] that was sent at [a] comes over a cable to [b]. Any port of a
    switch may be its way out: nothing is assumed of routes. *)
Inductive arrives (c : config) (a : place) (m : packet) : place -> Prop :=
| sent : forall b, cabled W a b -> arrives c a m b
| passed_on : forall x y b,
    arrives c a m x -> takes c x m -> fst y = fst x -> gives c y m -> cabled W y b ->
    arrives c a m b.

(** It is delivered to the port of a host where it arrives, whatever the host's own table says,
    and to port 0 of a switch that takes it, where that has its P_Key. *)
Inductive delivered (c : config) (a : place) (m : packet) : endport -> Prop :=
| to_host : forall e, is_switch e = false -> arrives c a m (e_at e) -> delivered c a m e
| to_switch : forall e x,
    is_switch e = true -> fst x = fst (e_at e) -> arrives c a m x -> takes c x m ->
    match m with Raw => True | Keyed k => in_table k (table c (e_at e)) end ->
    delivered c a m e.

(** * What hosts do to it *)

(** [K] are the M_Keys that some host knows: they tell each other. A host learns that of a
    switch which shows it, because its protection level is 0 or will be when the lease has run
    out; and with the M_Key of a switch, or where that is 0, it writes there what it likes. *)
Inductive step : (N -> Prop) * config -> (N -> Prop) * config -> Prop :=
| learns : forall (K : N -> Prop) c d,
    In d (devices F) -> protect_of c (d_guid d) = 0 \/ lease_of c (d_guid d) <> 0 ->
    step (K, c) (fun k => K k \/ k = key_of c (d_guid d), c)
| writes : forall (K : N -> Prop) c c' d,
    In d (devices F) -> key_of c (d_guid d) = 0 \/ K (key_of c (d_guid d)) ->
    step (K, c) (K, c').

Inductive attacked : (N -> Prop) * config -> (N -> Prop) * config -> Prop :=
| not_yet : forall s, attacked s s
| further : forall s t u, attacked s t -> step t u -> attacked s u.

(** * What the facts say of it *)

Definition agrees_word (has : ways -> bool) (w : ways) (b : bool) : Prop :=
  is_unread w = false -> b = has w.

Definition agrees_device (c : config) (K : N -> Prop) (d : device) : Prop :=
  let g := d_guid d in
  (forall n, entries d = Some n -> entries_of W g = n) /\
  agrees_word inward (enforces d) (can_in W g) /\ agrees_word outward (enforces d) (can_out W g) /\
  agrees_word inward (filters d) (raw_can_in W g) /\ agrees_word outward (filters d) (raw_can_out W g) /\
  (mkey d = GOwn -> key_of c g <> 0 /\ ~ K (key_of c g)) /\
  (forall n, protect d = Some n -> protect_of c g = n) /\
  (forall n, lease d = Some n -> lease_of c g = n).

Definition agrees_port (c : config) (p : port) : Prop :=
  let x := p_at p in
  (forall n, state p = Some n -> state_of W x = n) /\
  agrees_word inward (enforce p) (on_in c x) /\ agrees_word outward (enforce p) (on_out c x) /\
  agrees_word inward (filter_raw p) (raw_on_in c x) /\ agrees_word outward (filter_raw p) (raw_on_out c x) /\
  (forall t, p_keys p = Some t -> table c x = t).

(** The facts are true of the fabric. What was not read may be anything. Of hosts nothing is said
    but that a cable which the list has, and which was seen, is there. *)
Record agrees (c : config) (K : N -> Prop) : Prop := {
  ag_devices : forall d, In d (devices F) -> agrees_device c K d;
  ag_ports : forall p, In p (ports F) -> agrees_port c p;
  ag_switch_tables : forall e t, In e (ends F) -> is_switch e = true -> e_keys e = Some t -> table c (e_at e) = t;
  ag_cables : forall x y z, In x (cables F) -> listed x = true -> cabled W y z ->
    (y = c_a x -> z = c_b x) /\ (y = c_b x -> z = c_a x);
  ag_two_ends : forall y z, cabled W y z -> cabled W z y }.

(** * What yes promises *)

(** Two classes may talk where they have a partition in common of which one is a full member. *)
Definition may_talk (a b : list key) : Prop :=
  exists x y, In x a /\ In y b /\ base x = base y /\ (full x = true \/ full y = true).

(** The policy allows a packet from one place to another: between ports that it gives classes
    which may talk; raw ones where it allows these. A port has no secrets from itself. *)
Definition may_arrive (a : place) (m : packet) (e : endport) : Prop :=
  (m = Raw /\ raw_allowed F = true) \/
  exists s, In s (ends F) /\ e_at s = a /\ (a = e_at e \/ may_talk (of_class s) (of_class e)).

(** Whatever hosts did before, no packet that is sent at the port of a host, one that the facts name or
    a stranger's, is delivered where the policy does not allow it; and what a port sends that
    the facts name comes to no stranger. *)
Definition isolated : Prop :=
  forall c K c' K' a m,
    agrees c K -> attacked (K, c) (K', c') -> of_host a ->
    (forall e, In e (ends F) -> delivered c' a m e -> may_arrive a m e) /\
    (forall b s, In s (ends F) -> e_at s = a -> of_host b -> arrives c' a m b ->
       (m = Raw /\ raw_allowed F = true) \/ exists e, In e (ends F) /\ e_at e = b /\ may_arrive a m e).

End Fabric.

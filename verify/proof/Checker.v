(** The facts of a certificate, and the rules by which its claim follows from them: the same as
    in check.go, clause by clause, as a program of which Sound.v proves what it promises. *)

From Coq Require Import List NArith Bool.
Import ListNotations.
Local Open Scope N_scope.

(** * Facts *)

(** A P_Key: 15 bits that name the partition, and the membership bit. *)
Record key := Key { base : N; full : bool }.

(** A port: the GUID of the device and the number of the port; 0 is the management port of a switch. *)
Definition place : Type := N * N.

(** Directions in which something is done, or that this was not read. *)
Inductive ways := WUnread | WNo | WIn | WOut | WBoth.

(** What is known of an M_Key. *)
Inductive guard := GUnread | GHidden | GNone | GWeak | GShared | GOwn.

(** [None] stands for what was not read; of a table also for that there is none. *)
Record device := { d_guid : N; entries : option N; enforces : ways; filters : ways;
                   mkey : guard; protect : option N; lease : option N }.
Record port := { p_at : place; state : option N; enforce : ways; filter_raw : ways;
                 p_keys : option (list key) }.
Record endport := { e_guid : N; e_at : place; is_switch : bool;
                    e_keys : option (list key); of_class : list key }.
Record cable := { c_a : place; c_b : place; listed : bool }.
Record facts := { raw_allowed : bool; devices : list device; ports : list port;
                  ends : list endport; cables : list cable;
                  unread : bool (* there is a line that says so *) }.

Inductive verdict := Yes | No | Unknown.

(** * Looking things up *)

Definition same (x y : place) : bool := (fst x =? fst y) && (snd x =? snd y).

Section Rules.
Variable F : facts.

Definition device_of (x : place) : option device :=
  find (fun d => d_guid d =? fst x) (devices F).
Definition port_at (x : place) : option port := find (fun p => same (p_at p) x) (ports F).
Definition end_at (x : place) : option endport := find (fun e => same (e_at e) x) (ends F).
Definition peer (x : place) : option place :=
  match find (fun c => same (c_a c) x || same (c_b c) x) (cables F) with
  | Some c => Some (if same (c_a c) x then c_b c else c_a c)
  | None => None
  end.

Definition known {A} (o : option A) : bool := match o with Some _ => true | None => false end.

(** What the reader of certificates has made sure of. *)
Definition well_formed : bool :=
  forallb (fun p => known (device_of (p_at p)) && negb (snd (p_at p) =? 0)) (ports F)
  && forallb (fun e => Bool.eqb (known (device_of (e_at e))) (is_switch e)
                       && Bool.eqb (snd (e_at e) =? 0) (is_switch e)) (ends F).

(** * What a switch port does *)

Inductive checking := Passes | Checks | NotKnown.

Definition is_unread (w : ways) : bool := match w with WUnread => true | _ => false end.
Definition inward (w : ways) : bool := match w with WIn | WBoth => true | _ => false end.
Definition outward (w : ways) : bool := match w with WOut | WBoth => true | _ => false end.

(** [does has n can on]: whether a port checks in the direction of [has], with [n] entries in
    its table, where the switch can do so as [can] says and does so as [on] says. *)
Definition does (has : ways -> bool) (n : option N) (can on : ways) : checking :=
  if match n with Some 0 => true | _ => false end
     || (negb (is_unread can) && negb (has can)) || (negb (is_unread on) && negb (has on))
  then Passes
  else if negb (known n) || is_unread can || is_unread on then NotKnown
  else Checks.

Definition checks (c : checking) : bool := match c with Checks => true | _ => false end.
Definition not_known (c : checking) : bool := match c with NotKnown => true | _ => false end.

Definition keys_in (d : device) (p : port) := does inward (entries d) (enforces d) (enforce p).
Definition keys_out (d : device) (p : port) := does outward (entries d) (enforces d) (enforce p).
Definition raw_in (d : device) (p : port) := does inward (Some 1) (filters d) (filter_raw p).
Definition raw_out (d : device) (p : port) := does outward (Some 1) (filters d) (filter_raw p).

(** * Switches, cables, and links behind which somebody may be *)

Definition guard_unknown (d : device) : bool :=
  match mkey d with GUnread | GHidden => true | _ => false end
  || negb (known (protect d)) || negb (known (lease d)).

Definition guard_open (d : device) : bool :=
  match mkey d with GNone | GWeak | GShared => true | _ => false end
  || match protect d with Some 0 => true | _ => false end
  || match lease d with Some 0 => false | _ => true end.

Definition cable_unknown (c : cable) : bool :=
  let lost x := negb (known (device_of x)) && negb (known (end_at x)) in
  negb (listed c) || lost (c_a c) || lost (c_b c).

Definition empty (t : option (list key)) : bool := match t with Some [] => true | _ => false end.

(** A port in use of which no cable was read. *)
Definition behind_unknown (p : port) : bool :=
  if known (peer (p_at p)) then false
  else if match state p with Some s => (s =? 1) || (s =? 2) | None => false end then false
  else match device_of (p_at p) with
       | None => true
       | Some d =>
           negb (checks (keys_in d p) && checks (keys_out d p) && empty (p_keys p))
           || negb (raw_allowed F) && negb (checks (raw_in d p) && checks (raw_out d p))
       end.

(** * What an end port can do at worst *)

(** For [sends] and [gets] [None] is anything, where nothing is checked. *)
Record reach := { sends : option (list key); gets : option (list key);
                  raw_sends : bool; raw_gets : bool }.

(** [None] where that is not known. *)
Definition hold (e : endport) : option reach :=
  if is_switch e then
    match e_keys e with
    | Some t => Some {| sends := Some t; gets := Some t; raw_sends := true; raw_gets := true |}
    | None => None
    end
  else match peer (e_at e) with
  | None => None
  | Some x =>
      match port_at x, device_of x with
      | None, _ => Some {| sends := None; gets := None; raw_sends := true; raw_gets := true |}
      | Some _, None => None
      | Some p, Some d =>
          if not_known (keys_in d p) || not_known (keys_out d p) then None
          else if (checks (keys_in d p) || checks (keys_out d p)) && negb (known (p_keys p)) then None
          else if negb (raw_allowed F) && (not_known (raw_in d p) || not_known (raw_out d p)) then None
          else Some {| sends := if checks (keys_in d p) then p_keys p else None;
                       gets := if checks (keys_out d p) then p_keys p else None;
                       raw_sends := negb (checks (raw_in d p));
                       raw_gets := negb (checks (raw_out d p)) |}
      end
  end.

(** * Packets that arrive where the policy does not allow it *)

Definition has_base (b : N) (t : list key) : bool := existsb (fun k => base k =? b) t.

(** Two classes may talk over a partition that both have and of which one is a full member. *)
Definition allowed (a b : list key) : bool :=
  existsb (fun x => existsb (fun y => (base x =? base y) && (full x || full y)) b) a.

Definition can_send (s r : reach) : bool :=
  match sends s, gets r with
  | None, None => true
  | None, Some t | Some t, None => negb (empty (Some t))
  | Some t, Some u => existsb (fun k => has_base (base k) u) t
  end
  || negb (raw_allowed F) && raw_sends s && raw_gets r.

Definition crosses (s r : endport) : bool :=
  negb (is_switch s) && negb (same (e_at s) (e_at r)) && negb (allowed (of_class s) (of_class r))
  && match hold s, hold r with Some a, Some b => can_send a b | _, _ => false end.

(** * Tables that are not what a class says *)

(** [lacks exactly set k]: no key of the set is [k]; without [exactly] membership does not count. *)
Definition lacks (exactly : bool) (set : list key) (k : key) : bool :=
  negb (existsb (fun x => (base x =? base k) && (negb exactly || full x || negb (full k))) set).

Definition differ (exactly : bool) (table cls : list key) : bool :=
  existsb (lacks exactly table) cls || existsb (lacks exactly cls) table.

Inductive exactness := Exact | Differs | TableUnread.

Definition exact (e : endport) : exactness :=
  let own := match e_keys e with
             | None => TableUnread
             | Some t => if differ true t (of_class e) then Differs else Exact
             end in
  match peer (e_at e) with
  | None => own
  | Some x =>
      match port_at x, device_of x with
      | Some p, Some d =>
          match p_keys p with
          | None => own
          | Some t =>
              if checks (keys_in d p) && checks (keys_out d p) && empty (Some t) && empty (Some (of_class e))
              then Exact
              else if (checks (keys_in d p) || checks (keys_out d p)) && differ false t (of_class e)
              then Differs else own
          end
      | _, _ => own
      end
  end.

(** * The verdict *)

Fixpoint twice (guids : list N) : bool :=
  match guids with
  | [] => false
  | g :: more => existsb (N.eqb g) more || twice more
  end.

Definition is_no : bool :=
  existsb (fun d => negb (guard_unknown d) && guard_open d) (devices F)
  || existsb (fun s => existsb (crosses s) (ends F)) (ends F)
  || existsb (fun e => match exact e with Differs => true | _ => false end) (ends F).

Definition is_unknown : bool :=
  negb well_formed
  || unread F
  || existsb guard_unknown (devices F)
  || existsb cable_unknown (cables F)
  || existsb behind_unknown (ports F)
  || twice (map e_guid (ends F))
  || existsb (fun e => negb (known (hold e))) (ends F)
  || existsb (fun e => match exact e with TableUnread => true | _ => false end) (ends F).

Definition check : verdict := if is_no then No else if is_unknown then Unknown else Yes.

End Rules.

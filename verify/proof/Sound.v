(** What the checker accepts is isolated. *)

From Coq Require Import List NArith Bool.
From Verify Require Import Checker Model.
Import ListNotations.
Local Open Scope N_scope.

(** * What the checker looks up is in the facts *)

Lemma same_eq : forall x y, same x y = true <-> x = y.
Proof.
  intros [a b] [c d]; unfold same; simpl. rewrite andb_true_iff, !N.eqb_eq.
  split; [intros [-> ->]; reflexivity | intros H; inversion H; auto].
Qed.

Lemma known_some : forall A (o : option A), known o = true -> exists x, o = Some x.
Proof. intros A [x|] H; [eauto | discriminate]. Qed.

(** Of a list that a rule does not hold against, no element breaks it. *)
Lemma none_of : forall A (f : A -> bool) l, existsb f l = false -> forall x, In x l -> f x = false.
Proof.
  intros A f l H x I. destruct (f x) eqn:E; [|reflexivity].
  assert (existsb f l = true) by (apply existsb_exists; eauto). congruence.
Qed.

Section Sound.
Variable F : facts.
Variable W : fabric.
Hypothesis accepted : check F = Yes.

Lemma device_of_some : forall x d, device_of F x = Some d -> In d (devices F) /\ d_guid d = fst x.
Proof. unfold device_of; intros x d H. apply find_some in H as [I E]. apply N.eqb_eq in E. auto. Qed.

Lemma port_at_some : forall x p, port_at F x = Some p -> In p (ports F) /\ p_at p = x.
Proof. unfold port_at; intros x p H. apply find_some in H as [I E]. apply same_eq in E. auto. Qed.

Lemma end_at_some : forall x e, end_at F x = Some e -> In e (ends F) /\ e_at e = x.
Proof. unfold end_at; intros x e H. apply find_some in H as [I E]. apply same_eq in E. auto. Qed.

Definition joins (c : cable) (x y : place) : Prop := (c_a c = x /\ c_b c = y) \/ (c_b c = x /\ c_a c = y).

Lemma peer_some : forall x y, peer F x = Some y -> exists c, In c (cables F) /\ joins c x y.
Proof.
  unfold peer, joins; intros x y H.
  destruct (find _ _) as [c|] eqn:E; [|discriminate]. apply find_some in E as [I E].
  exists c; split; [exact I|]. destruct (same (c_a c) x) eqn:S; inversion H; subst.
  - left. apply same_eq in S. auto.
  - right. simpl in E. apply same_eq in E. auto.
Qed.

Lemma peer_none : forall x y c, peer F x = None -> In c (cables F) -> ~ joins c x y.
Proof.
  unfold peer, joins; intros x y c H I J.
  destruct (find _ _) eqn:E; [discriminate|]. pose proof (find_none _ _ E c I) as N; simpl in N.
  apply orb_false_iff in N as [A B].
  destruct J as [[<- _]|[<- _]]; [rewrite (proj2 (same_eq _ _)) in A by reflexivity | rewrite (proj2 (same_eq _ _)) in B by reflexivity]; discriminate.
Qed.

(** * What yes means, clause by clause *)

Lemma is_no_false : is_no F = false.
Proof. unfold check in accepted. destruct (is_no F); [discriminate|reflexivity]. Qed.

Lemma is_unknown_false : is_unknown F = false.
Proof. unfold check in accepted. destruct (is_no F), (is_unknown F); congruence. Qed.

Ltac clauses H := unfold is_no, is_unknown in H; repeat rewrite orb_false_iff in H; decompose [and] H; clear H.

Lemma no_open : forall d, In d (devices F) -> guard_unknown d = false /\ guard_open d = false.
Proof.
  intros d I. pose proof is_no_false as A; pose proof is_unknown_false as B. clauses A; clauses B.
  assert (U : guard_unknown d = false) by (eapply none_of in I; eauto). split; [exact U|].
  match goal with H : existsb (fun d => _ && guard_open d) _ = false |- _ => eapply none_of in H; [|exact I] end.
  simpl in *. rewrite U in *. assumption.
Qed.

Lemma no_crossing : forall s e, In s (ends F) -> In e (ends F) -> crosses F s e = false.
Proof.
  intros s e I J. pose proof is_no_false as A. clauses A.
  match goal with H : existsb (fun s => existsb _ _) _ = false |- _ => eapply none_of in H; [|exact I] end.
  simpl in *. eapply none_of; eauto.
Qed.

Lemma cables_known : forall c, In c (cables F) -> cable_unknown F c = false.
Proof. intros c I. pose proof is_unknown_false as B. clauses B. eapply none_of; eauto. Qed.

Lemma all_held : forall e, In e (ends F) -> exists r, hold F e = Some r.
Proof.
  intros e I. pose proof is_unknown_false as B. clauses B.
  match goal with H : existsb (fun e => negb (known (hold F e))) _ = false |- _ => eapply none_of in H; [|exact I] end.
  apply known_some. apply negb_false_iff. assumption.
Qed.

Lemma nobody_behind : forall p, In p (ports F) -> behind_unknown F p = false.
Proof. intros p I. pose proof is_unknown_false as B. clauses B. eapply none_of; eauto. Qed.

Lemma formed : well_formed F = true.
Proof. pose proof is_unknown_false as B. clauses B. apply negb_false_iff. assumption. Qed.

Lemma port_formed : forall p, In p (ports F) -> exists d, device_of F (p_at p) = Some d.
Proof.
  intros p I. pose proof formed as H. unfold well_formed in H. apply andb_true_iff in H as [H _].
  rewrite forallb_forall in H. specialize (H p I). apply andb_true_iff in H as [H _]. apply known_some. exact H.
Qed.

Lemma end_formed : forall e, In e (ends F) -> known (device_of F (e_at e)) = is_switch e.
Proof.
  intros e I. pose proof formed as H. unfold well_formed in H. apply andb_true_iff in H as [_ H].
  rewrite forallb_forall in H. specialize (H e I). apply andb_true_iff in H as [H _]. apply eqb_prop. exact H.
Qed.

(** * No host can write to a switch *)

Section Config.
Variable c : config.
Variable K : N -> Prop.
Hypothesis true_facts : agrees F W c K.

Lemma no_step : forall u, ~ step F (K, c) u.
Proof.
  intros u S.
  assert (G : exists d, In d (devices F) /\
    ((protect_of c (d_guid d) = 0 \/ lease_of c (d_guid d) <> 0) \/ key_of c (d_guid d) = 0 \/ K (key_of c (d_guid d))))
    by (inversion S; subst; eauto).
  destruct G as (d & I & G). destruct (no_open d I) as [U O].
  destruct (ag_devices _ _ _ _ true_facts d I) as (_ & _ & _ & _ & _ & Own & P & L).
  unfold guard_unknown in U. unfold guard_open in O.
  destruct (mkey d); try discriminate.
  destruct (protect d) as [n|]; [|discriminate]. destruct (lease d) as [l|]; [|discriminate].
  destruct n; [discriminate|]. destruct l; [|discriminate].
  destruct (Own eq_refl) as [O1 O2]. specialize (P _ eq_refl). specialize (L _ eq_refl).
  destruct G as [[G|G]|[G|G]]; congruence.
Qed.

Lemma frozen : forall s, attacked F (K, c) s -> s = (K, c).
Proof.
  intros s A. remember (K, c) as s0 eqn:E. induction A as [|s t u A IH S]; [reflexivity|].
  specialize (IH E); subst. exfalso. eapply no_step; eauto.
Qed.

(** * Cables *)

Lemma peer_cabled : forall x y z, peer F x = Some y -> cabled W x z -> z = y.
Proof.
  intros x y z H C. apply peer_some in H as (k & I & J).
  assert (L : listed k = true).
  { pose proof (cables_known k I) as U. unfold cable_unknown in U. destruct (listed k); [reflexivity|discriminate]. }
  destruct (ag_cables _ _ _ _ true_facts k x z I L C) as [A B]. destruct J as [[<- <-]|[<- <-]]; auto.
Qed.

(** The other end of a cable that is in the facts is a switch or an end port in the facts. *)
Lemma peer_known : forall x y, peer F x = Some y -> of_host F y -> exists e, In e (ends F) /\ e_at e = y /\ is_switch e = false.
Proof.
  intros x y H Host. apply peer_some in H as (k & I & J).
  pose proof (cables_known k I) as U. unfold cable_unknown in U.
  apply orb_false_iff in U as [U B]. apply orb_false_iff in U as [_ A].
  assert (L : negb (known (device_of F y)) && negb (known (end_at F y)) = false) by (destruct J as [[_ <-]|[_ <-]]; assumption).
  assert (D : known (device_of F y) = false).
  { destruct (device_of F y) as [d|] eqn:E; [|reflexivity]. apply device_of_some in E as [I' E]. destruct (Host d I' E). }
  rewrite D in L. simpl in L. apply negb_false_iff in L. apply known_some in L as [e E]. apply end_at_some in E as [Ie Ee].
  exists e. repeat split; auto. rewrite <- (end_formed e Ie). rewrite Ee. exact D.
Qed.

(** A cable at both ends of which the facts have a port is in the facts from both. *)
Lemma peer_back : forall x y, peer F x = Some y -> cabled W y x -> peer F y = Some x.
Proof.
  intros x y H C. destruct (peer F y) as [z|] eqn:E.
  - rewrite (peer_cabled y z x E C). reflexivity.
  - apply peer_some in H as (k & I & J). destruct (peer_none y x k E I). unfold joins in *. tauto.
Qed.

Lemma host_not_external : forall x p, of_host F x -> port_at F x = Some p -> False.
Proof.
  intros x p H E. apply port_at_some in E as [I E]. destruct (port_formed p I) as [d D].
  apply device_of_some in D as [Id D]. rewrite E in D. exact (H d Id D).
Qed.

Lemma external_port : forall x, external F x -> exists p d, port_at F x = Some p /\ device_of F x = Some d.
Proof.
  intros x (p & I & E). destruct (port_at F x) as [q|] eqn:Q.
  - destruct (port_at_some x q Q) as [Iq Eq]. destruct (port_formed q Iq) as [d D]. rewrite Eq in D. eauto.
  - pose proof (find_none _ _ Q p I) as N. simpl in N. rewrite (proj2 (same_eq _ _) E) in N. discriminate.
Qed.

(** * What a switch port does is what the facts say *)

Lemma does_checks : forall has n can on, does has n can on = Checks ->
  (exists m, n = Some m /\ m <> 0) /\ is_unread can = false /\ has can = true /\ is_unread on = false /\ has on = true.
Proof.
  intros has n can on H. unfold does in H.
  destruct n as [[|m]|]; simpl in H; try discriminate;
  destruct (is_unread can), (has can), (is_unread on), (has on); simpl in H; try discriminate.
  repeat split; eauto. exists (N.pos m). split; congruence.
Qed.

Lemma is_checks : forall k, checks k = true -> k = Checks.
Proof. intros []; simpl; congruence. Qed.

Section Port.
Variables (x : place) (p : port) (d : device).
Hypothesis at_x : port_at F x = Some p.
Hypothesis of_x : device_of F x = Some d.

Let agree_p : agrees_port W c p.
Proof. apply (ag_ports _ _ _ _ true_facts). apply (port_at_some x p at_x). Qed.
Let agree_d : agrees_device W c K d.
Proof. apply (ag_devices _ _ _ _ true_facts). apply (device_of_some x d of_x). Qed.
Let p_x : p_at p = x := proj2 (port_at_some x p at_x).
Let d_x : d_guid d = fst x := proj2 (device_of_some x d of_x).

Definition in_base (k : key) (t : list key) : Prop := has_base (base k) t = true /\ t <> [].

Lemma in_table_base : forall k t, in_table k t -> in_base k t.
Proof.
  intros k t (y & I & E & _). split; [|intros ->; destruct I].
  unfold has_base. apply existsb_exists. exists y. rewrite E. split; [exact I|apply N.eqb_refl].
Qed.

Ltac facts_of_port :=
  pose proof agree_p as AP; pose proof agree_d as AD; unfold agrees_port, agrees_device, agrees_word in AP, AD;
  rewrite p_x in AP; rewrite d_x in AD;
  destruct AP as (_ & PI & PO & RI & RO & T); destruct AD as (E & CI & CO & QI & QO & _).

Lemma takes_keyed : forall k, takes F W c x (Keyed k) -> checks (keys_in d p) = true ->
  forall t, p_keys p = Some t -> in_base k t.
Proof.
  intros k (_ & _ & H) C t Ht. apply is_checks in C. apply does_checks in C as ((m & Em & Nm) & A1 & A2 & A3 & A4).
  facts_of_port. rewrite <- (T t Ht). apply in_table_base. apply H; [rewrite (E m Em); exact Nm|].
  rewrite (CI A1), (PI A3), A2, A4. reflexivity.
Qed.

Lemma gives_keyed : forall k, gives F W c x (Keyed k) -> checks (keys_out d p) = true ->
  forall t, p_keys p = Some t -> in_base k t.
Proof.
  intros k (_ & _ & H) C t Ht. apply is_checks in C. apply does_checks in C as ((m & Em & Nm) & A1 & A2 & A3 & A4).
  facts_of_port. rewrite <- (T t Ht). apply in_table_base. apply H; [rewrite (E m Em); exact Nm|].
  rewrite (CO A1), (PO A3), A2, A4. reflexivity.
Qed.

Lemma takes_raw : takes F W c x Raw -> checks (raw_in d p) = false.
Proof.
  intros (_ & _ & H). destruct (checks (raw_in d p)) eqn:C; [|reflexivity].
  apply is_checks in C. apply does_checks in C as (_ & A1 & A2 & A3 & A4).
  facts_of_port. rewrite (QI A1), (RI A3), A2, A4 in H. discriminate.
Qed.

Lemma gives_raw : gives F W c x Raw -> checks (raw_out d p) = false.
Proof.
  intros (_ & _ & H). destruct (checks (raw_out d p)) eqn:C; [|reflexivity].
  apply is_checks in C. apply does_checks in C as (_ & A1 & A2 & A3 & A4).
  facts_of_port. rewrite (QO A1), (RO A3), A2, A4 in H. discriminate.
Qed.

(** Where the facts have no cable, nothing but raw packets that the policy allows comes in or goes out. *)
Lemma shut : forall m, peer F x = None -> takes F W c x m \/ gives F W c x m -> m = Raw /\ raw_allowed F = true.
Proof.
  intros m P H. pose proof (proj1 (port_at_some x p at_x)) as I. pose proof (nobody_behind p I) as B.
  unfold behind_unknown in B. rewrite p_x, P, of_x in B. simpl in B.
  destruct (match state p with Some s => (s =? 1) || (s =? 2) | None => false end) eqn:S.
  - exfalso. destruct (state p) as [s|] eqn:Es; [|discriminate]. pose proof agree_p as (A & _). specialize (A s Es). rewrite p_x in A.
    assert (D : data_passes W x) by (destruct H as [(_ & D & _)|(_ & D & _)]; exact D). destruct D as [D1 D2].
    apply orb_true_iff in S as [S|S]; apply N.eqb_eq in S; congruence.
  - apply orb_false_iff in B as [B R]. apply negb_false_iff in B. apply andb_true_iff in B as [B E]. apply andb_true_iff in B as [Bi Bo].
    destruct m as [|k].
    + split; [reflexivity|]. destruct (raw_allowed F); [reflexivity|]. exfalso. simpl in R. apply negb_false_iff in R. apply andb_true_iff in R as [R1 R2].
      destruct H as [H|H]; [apply takes_raw in H | apply gives_raw in H]; congruence.
    + exfalso. unfold empty in E. destruct (p_keys p) as [[|]|] eqn:Kp; try discriminate.
      destruct H as [H|H]; [eapply takes_keyed in H | eapply gives_keyed in H]; eauto; destruct H as [_ H]; congruence.
Qed.
End Port.

(** * What an end port can do is what the checker holds it to be able to do *)

Definition within (m : packet) (keys : option (list key)) (raw : bool) : Prop :=
  match m with
  | Raw => raw = true
  | Keyed k => forall t, keys = Some t -> in_base k t
  end.

Lemma may_send : forall s x m r, In s (ends F) -> is_switch s = false -> peer F (e_at s) = Some x -> hold F s = Some r ->
  takes F W c x m -> within m (sends r) (raw_sends r).
Proof.
  intros s x m r I Sw P H T. unfold hold in H. rewrite Sw, P in H.
  destruct (external_port x) as (p & d & Ep & Ed); [apply T|]. rewrite Ep, Ed in H.
  destruct (not_known (keys_in d p) || not_known (keys_out d p)); [discriminate|].
  destruct ((checks (keys_in d p) || checks (keys_out d p)) && negb (known (p_keys p))); [discriminate|].
  destruct (negb (raw_allowed F) && (not_known (raw_in d p) || not_known (raw_out d p))); [discriminate|].
  inversion H; subst; clear H. destruct m as [|k]; simpl.
  - rewrite (takes_raw x p d Ep Ed T). reflexivity.
  - intros t Ht. destruct (checks (keys_in d p)) eqn:C; [|discriminate]. exact (takes_keyed x p d Ep Ed k T C t Ht).
Qed.

Lemma may_get : forall e x m r, In e (ends F) -> is_switch e = false -> peer F (e_at e) = Some x -> hold F e = Some r ->
  gives F W c x m -> within m (gets r) (raw_gets r).
Proof.
  intros e x m r I Sw P H T. unfold hold in H. rewrite Sw, P in H.
  destruct (external_port x) as (p & d & Ep & Ed); [apply T|]. rewrite Ep, Ed in H.
  destruct (not_known (keys_in d p) || not_known (keys_out d p)); [discriminate|].
  destruct ((checks (keys_in d p) || checks (keys_out d p)) && negb (known (p_keys p))); [discriminate|].
  destruct (negb (raw_allowed F) && (not_known (raw_in d p) || not_known (raw_out d p))); [discriminate|].
  inversion H; subst; clear H. destruct m as [|k]; simpl.
  - rewrite (gives_raw x p d Ep Ed T). reflexivity.
  - intros t Ht. destruct (checks (keys_out d p)) eqn:C; [|discriminate]. exact (gives_keyed x p d Ep Ed k T C t Ht).
Qed.

(** A host that is cabled to a host can do anything. *)
Lemma unchecked : forall e y r, In e (ends F) -> is_switch e = false -> peer F (e_at e) = Some y -> of_host F y -> hold F e = Some r ->
  forall m, within m (sends r) (raw_sends r) /\ within m (gets r) (raw_gets r).
Proof.
  intros e y r I Sw P Host H m. unfold hold in H. rewrite Sw, P in H.
  destruct (port_at F y) as [p|] eqn:E; [destruct (host_not_external y p Host E)|].
  inversion H; subst; clear H. destruct m; simpl; split; congruence.
Qed.

Lemma base_both : forall k t u, in_base k t -> in_base k u -> existsb (fun x => has_base (base x) u) t = true.
Proof.
  intros k t u [A _] [B _]. unfold has_base in A. apply existsb_exists in A as (x & I & E). apply N.eqb_eq in E.
  apply existsb_exists. exists x. rewrite E. auto.
Qed.

Lemma nonempty : forall k t, in_base k t -> negb (empty (Some t)) = true.
Proof. intros k [|x t] [_ H]; [congruence|reflexivity]. Qed.

Lemma allowed_talk : forall a b, allowed a b = true -> may_talk a b.
Proof.
  intros a b H. unfold allowed in H. apply existsb_exists in H as (x & I & H). apply existsb_exists in H as (y & J & H).
  apply andb_true_iff in H as [E H]. apply N.eqb_eq in E. apply orb_true_iff in H. exists x, y. auto.
Qed.

(** What can be sent, and got, between two ports is allowed. *)
Lemma concluded : forall s e m r q, In s (ends F) -> In e (ends F) -> is_switch s = false -> hold F s = Some r -> hold F e = Some q ->
  within m (sends r) (raw_sends r) -> within m (gets q) (raw_gets q) -> may_arrive F (e_at s) m e.
Proof.
  intros s e m r q I J Sw R Q Ws Wg. pose proof (no_crossing s e I J) as X. unfold crosses in X. rewrite Sw, R, Q in X. simpl in X.
  destruct (same (e_at s) (e_at e)) eqn:S; [right; exists s; repeat split; auto; left; apply same_eq; exact S|].
  destruct (allowed (of_class s) (of_class e)) eqn:A; [right; exists s; repeat split; auto; right; apply allowed_talk; exact A|].
  destruct m as [|k]; simpl in *.
  - left. split; [reflexivity|]. destruct (raw_allowed F) eqn:Raw; [reflexivity|]. exfalso.
    unfold can_send in X. rewrite Raw, Ws, Wg in X. simpl in X. rewrite orb_true_r in X. discriminate.
  - exfalso. unfold can_send in X. apply orb_false_iff in X as [X _].
    destruct (sends r) as [t|], (gets q) as [u|]; try discriminate.
    + rewrite (base_both k t u) in X by auto. discriminate.
    + rewrite (nonempty k t) in X by auto. discriminate.
    + rewrite (nonempty k u) in X by auto. discriminate.
Qed.

(** * The way of a packet: only its first and its last switch port count *)

Lemma way : forall a m b, arrives F W c a m b ->
  cabled W a b \/ exists x y, cabled W a x /\ takes F W c x m /\ gives F W c y m /\ cabled W y b.
Proof.
  intros a m b H. induction H as [b C | x y b A IH T E G C]; [left; exact C|right].
  destruct IH as [C1 | (x0 & y0 & C1 & T1 & _)]; [exists x, y | exists x0, y]; auto.
Qed.

(** A host whose packet a switch takes is in the facts, cabled there. *)
Lemma sender : forall a x m, of_host F a -> cabled W a x -> takes F W c x m ->
  (m = Raw /\ raw_allowed F = true) \/
  exists s, In s (ends F) /\ e_at s = a /\ is_switch s = false /\ peer F a = Some x.
Proof.
  intros a x m Host C T. destruct (external_port x) as (p & d & Ep & Ed); [apply T|].
  pose proof (ag_two_ends _ _ _ _ true_facts a x C) as C'.
  destruct (peer F x) as [y|] eqn:P; [right | left; exact (shut x p d Ep Ed m P (or_introl T))].
  pose proof (peer_cabled x y a P C') as <-. destruct (peer_known x a P Host) as (s & I & E & Sw).
  exists s. repeat split; auto. apply peer_back; auto.
Qed.

(** A host to which a switch gives a packet is in the facts, cabled there. *)
Lemma getter : forall b y m, of_host F b -> cabled W y b -> gives F W c y m ->
  (m = Raw /\ raw_allowed F = true) \/
  exists e, In e (ends F) /\ e_at e = b /\ is_switch e = false /\ peer F b = Some y.
Proof.
  intros b y m Host C G. destruct (external_port y) as (p & d & Ep & Ed); [apply G|].
  destruct (peer F y) as [z|] eqn:P; [right | left; exact (shut y p d Ep Ed m P (or_intror G))].
  pose proof (peer_cabled y z b P C) as <-. destruct (peer_known y b P Host) as (e & I & E & Sw).
  exists e. repeat split; auto. apply peer_back; auto. exact (ag_two_ends _ _ _ _ true_facts y b C).
Qed.

Lemma host_end : forall e, In e (ends F) -> is_switch e = false -> of_host F (e_at e).
Proof.
  intros e I Sw d Id E. pose proof (end_formed e I) as H. rewrite Sw in H. unfold device_of in H.
  destruct (find _ _) eqn:Q; [discriminate|]. pose proof (find_none _ _ Q d Id) as N. simpl in N.
  rewrite E, N.eqb_refl in N. discriminate.
Qed.

(** A host in the facts is cabled as they say. *)
Lemma host_peer : forall e, In e (ends F) -> is_switch e = false -> exists y, peer F (e_at e) = Some y.
Proof.
  intros e I Sw. destruct (all_held e I) as [r H]. unfold hold in H. rewrite Sw in H.
  destruct (peer F (e_at e)) as [y|]; [eauto|discriminate].
Qed.

Lemma arrives_at_host : forall a m e, of_host F a -> In e (ends F) -> is_switch e = false -> arrives F W c a m (e_at e) -> may_arrive F a m e.
Proof.
  intros a m e Host I Sw A. destruct (all_held e I) as [q Q]. destruct (host_peer e I Sw) as [z P].
  pose proof (host_end e I Sw) as HostE. destruct (way a m _ A) as [C | (x & y & C1 & T & G & C2)].
  - pose proof (ag_two_ends _ _ _ _ true_facts _ _ C) as C'. pose proof (peer_cabled _ _ _ P C') as <-.
    destruct (peer_known _ _ P Host) as (s & Is & <- & Ss). destruct (all_held s Is) as [r R].
    pose proof (peer_back _ _ P C) as P'.
    apply (concluded s e m r q); auto;
      [apply (unchecked s (e_at e) r Is Ss P' HostE R) | apply (unchecked e (e_at s) q I Sw P Host Q)].
  - destruct (sender a x m Host C1 T) as [Raw | (s & Is & <- & Ss & Ps)]; [left; exact Raw|].
    destruct (getter _ y m HostE C2 G) as [Raw | (e' & _ & _ & _ & Pe)]; [left; exact Raw|].
    destruct (all_held s Is) as [r R].
    apply (concluded s e m r q); auto; [apply (may_send s x) | apply (may_get e y)]; auto.
Qed.

Lemma arrives_at_switch : forall a m e x, of_host F a -> In e (ends F) -> is_switch e = true -> arrives F W c a m x -> takes F W c x m ->
  match m with Raw => True | Keyed k => in_table k (table c (e_at e)) end -> may_arrive F a m e.
Proof.
  intros a m e x Host I Sw A T M. destruct (all_held e I) as [q Q].
  assert (F1 : exists x1, cabled W a x1 /\ takes F W c x1 m)
    by (destruct (way a m x A) as [C | (x1 & y & C & T1 & _)]; eauto).
  destruct F1 as (x1 & C1 & T1).
  destruct (sender a x1 m Host C1 T1) as [Raw | (s & Is & <- & Ss & Ps)]; [left; exact Raw|].
  destruct (all_held s Is) as [r R].
  apply (concluded s e m r q); auto; [apply (may_send s x1); auto|].
  unfold hold in Q. rewrite Sw in Q. destruct (e_keys e) as [t|] eqn:Ek; [|discriminate]. inversion Q; subst; simpl.
  destruct m as [|k]; [reflexivity|]. intros u Hu. inversion Hu; subst.
  rewrite <- (ag_switch_tables _ _ _ _ true_facts e u I Sw Ek). apply in_table_base. exact M.
Qed.

Lemma comes_to : forall s b m, In s (ends F) -> of_host F (e_at s) -> of_host F b -> arrives F W c (e_at s) m b ->
  (m = Raw /\ raw_allowed F = true) \/ exists e, In e (ends F) /\ e_at e = b /\ is_switch e = false.
Proof.
  intros s b m I Host HostB A. destruct (way _ m b A) as [C | (x & y & _ & _ & G & C2)].
  - right. pose proof (end_formed s I) as Fs. destruct (is_switch s) eqn:Sw.
    + apply known_some in Fs as [d D]. apply device_of_some in D as [Id D]. destruct (Host d Id D).
    + destruct (host_peer s I Sw) as [z P]. pose proof (peer_cabled _ _ _ P C) as <-. exact (peer_known _ _ P HostB).
  - destruct (getter b y m HostB C2 G) as [Raw | (e & Ie & E & Sw & _)]; [left; exact Raw|right; eauto].
Qed.
End Config.

(** * The theorem *)

Theorem sound : isolated F W.
Proof.
  intros c K c' K' a m Ag At Host. apply (frozen c K Ag) in At. inversion At; subst; clear At. split.
  - intros e I D. destruct D as [e Sw A | e x Sw _ A T M];
      [eapply arrives_at_host | eapply arrives_at_switch]; eauto.
  - intros b s I <- HostB A. destruct (comes_to c K Ag s b m I Host HostB A) as [Raw | (e & Ie & <- & Sw)]; [left; exact Raw|].
    right. exists e. repeat split; auto. eapply arrives_at_host; eauto.
Qed.
End Sound.

(** What the checker accepts is isolated, whatever fabric it is of. *)
Theorem accepted_is_isolated : forall F, check F = Yes -> forall W, isolated F W.
Proof. intros F A W. apply sound. exact A. Qed.

Print Assumptions accepted_is_isolated.

(** The theorem is not about nothing: of a fabric of one switch and three hosts the checker says
    yes, the facts are true of it, and the packet that the policy allows is delivered. With
    the inbound check of one port off it says no, and a packet that is not allowed is. *)

From Coq Require Import List NArith Bool.
From Verify Require Import Checker Model.
Import ListNotations.
Local Open Scope N_scope.

Definition red : list key := [Key 16 true].
Definition blue : list key := [Key 32 true].

(** Hosts 2 and 3 are red, host 4 is blue; host [h] is at port [h] of switch 1. *)
Definition color (h : N) : list key := if h =? 4 then blue else red.

Definition at_switch (w : ways) (h : N) : port :=
  {| p_at := (1, h); state := Some 4; enforce := w; filter_raw := WBoth; p_keys := Some (color h) |}.
Definition host (h : N) : endport :=
  {| e_guid := h; e_at := (h, 1); is_switch := false; e_keys := Some (color h); of_class := color h |}.
Definition wire (h : N) : cable := {| c_a := (1, h); c_b := (h, 1); listed := true |}.

(** [w] is what the port of host 4 checks. *)
Definition small (w : ways) : facts :=
  {| raw_allowed := false;
     devices := [{| d_guid := 1; entries := Some 32; enforces := WBoth; filters := WBoth;
                    mkey := GOwn; protect := Some 2; lease := Some 0 |}];
     ports := [at_switch WBoth 2; at_switch WBoth 3; at_switch w 4];
     ends := [{| e_guid := 1; e_at := (1, 0); is_switch := true; e_keys := Some []; of_class := [] |};
              host 2; host 3; host 4];
     cables := map wire [2; 3; 4];
     unread := false |}.

Definition of_small : fabric :=
  {| cabled := fun x y => exists h, In h [2; 3; 4] /\ ((x = (1, h) /\ y = (h, 1)) \/ (x = (h, 1) /\ y = (1, h)));
     state_of := fun _ => 4; entries_of := fun _ => 32;
     can_in := fun _ => true; can_out := fun _ => true; raw_can_in := fun _ => true; raw_can_out := fun _ => true |}.

Definition set_up (w : ways) : config :=
  let on has := fun x : place => if snd x =? 4 then has w else true in
  {| on_in := on inward; on_out := on outward; raw_on_in := fun _ => true; raw_on_out := fun _ => true;
     table := fun x => if snd x =? 0 then [] else color (snd x);
     key_of := fun _ => 77; protect_of := fun _ => 2; lease_of := fun _ => 0 |}.

Definition nothing (_ : N) : Prop := False.

Lemma facts_are_true : forall w, w <> WUnread -> agrees (small w) of_small (set_up w) nothing.
Proof.
  intros w Read. split.
  - intros d [<-|[]]. unfold agrees_device, agrees_word, nothing. simpl.
    repeat split; intros; try congruence; try (injection H as <-; reflexivity); auto.
  - intros p [<-|[<-|[<-|[]]]]; unfold agrees_port, agrees_word; simpl;
      repeat split; intros; try congruence; try (injection H as <-; reflexivity); reflexivity.
  - intros e t [<-|[<-|[<-|[<-|[]]]]] S K; simpl in *; congruence.
  - intros x y z [<-|[<-|[<-|[]]]] _ (h & I & [[-> ->]|[-> ->]]); simpl; split; intros E; inversion E; subst; try reflexivity;
      exfalso; simpl in I; intuition congruence.
  - intros y z (h & I & D). exists h. tauto.
Qed.

Example yes : check (small WBoth) = Yes.
Proof. reflexivity. Qed.

Lemma passes : forall w a b k, In a [2; 3; 4] -> In b [2; 3; 4] ->
  takes (small w) of_small (set_up w) (1, a) k -> gives (small w) of_small (set_up w) (1, b) k ->
  delivered (small w) of_small (set_up w) (a, 1) k (host b).
Proof.
  intros w a b k Ia Ib T G. apply to_host; [reflexivity|]. apply (passed_on _ _ _ _ _ (1, a) (1, b)); auto.
  - apply sent. exists a. auto.
  - exists b. auto.
Qed.

Ltac at_port n := exists n; simpl; auto.

Example allowed_arrives : delivered (small WBoth) of_small (set_up WBoth) (2, 1) (Keyed (Key 16 true)) (host 3).
Proof.
  apply passes; simpl; auto.
  - unfold takes, gives, data_passes; split; [at_port (at_switch WBoth 2)|]. split; [split; discriminate|].
    intros _ _. exists (Key 16 true). simpl. unfold matches. simpl. intuition discriminate.
  - unfold takes, gives, data_passes; split; [at_port (at_switch WBoth 3)|]. split; [split; discriminate|].
    intros _ _. exists (Key 16 true). simpl. unfold matches. simpl. intuition discriminate.
Qed.

Example no : check (small WOut) = No.
Proof. reflexivity. Qed.

Example forged_arrives : delivered (small WOut) of_small (set_up WOut) (4, 1) (Keyed (Key 16 true)) (host 3)
  /\ ~ may_arrive (small WOut) (4, 1) (Keyed (Key 16 true)) (host 3).
Proof.
  split.
  - apply passes; simpl; auto 6.
    + unfold takes, gives, data_passes; split; [at_port (at_switch WOut 4)|]. split; [split; discriminate|]. simpl. discriminate.
    + unfold takes, gives, data_passes; split; [at_port (at_switch WBoth 3)|]. split; [split; discriminate|].
      intros _ _. exists (Key 16 true). simpl. unfold matches. simpl. intuition discriminate.
  - intros [[H _]|(s & I & E & [H|H])]; [discriminate | inversion H |].
    simpl in I. destruct I as [<-|[<-|[<-|[<-|[]]]]]; simpl in *; try congruence.
    destruct H as (x & y & [<-|[]] & [<-|[]] & H & _). discriminate.
Qed.

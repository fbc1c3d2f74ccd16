(** The checker as a program: what main.ml asks. *)

From Coq Require Import Extraction ExtrOcamlBasic.
From Verify Require Import Checker.

Extraction Language OCaml.
Extraction "checker.ml" check.

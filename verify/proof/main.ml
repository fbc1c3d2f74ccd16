(* Reads certificates and prints what the checker that Coq extracted says of each:
   yes, no or unknown, and the file. Times, sums and the order of lines are not looked
   at here: that is read.go's. *)

open Checker

let rec positive i = if i = 1L then XH
  else let half = positive (Int64.shift_right_logical i 1) in
    if Int64.logand i 1L = 1L then XI half else XO half

let number text = match Int64.of_string text with 0L -> N0 | i -> Npos (positive i)
let hex text = number ("0x" ^ text)
let decimal text = number ("0u" ^ text)
let count = function "unread" -> None | text -> Some (decimal text)

let ways = function
  | "no" -> WNo | "in" -> WIn | "out" -> WOut | "both" -> WBoth | "unread" -> WUnread
  | other -> failwith ("ways " ^ other)

let guard = function
  | "own" -> GOwn | "shared" -> GShared | "weak" -> GWeak | "none" -> GNone
  | "hidden" -> GHidden | "unread" -> GUnread
  | other -> failwith ("key " ^ other)

let p_key text =
  let k = int_of_string ("0x" ^ text) in
  { base = number (string_of_int (k land 0x7fff)); full = k land 0x8000 <> 0 }

(* What stands after = in a word. *)
let value word = let i = String.index word '=' in String.sub word (i + 1) (String.length word - i - 1)

let empty = { raw_allowed = false; devices = []; ports = []; ends = []; cables = []; unread = false }

let read file =
  let sets = Hashtbl.create 64 in
  let table word = match value word with
    | "unread" | "none" -> None
    | text -> Some (Hashtbl.find sets text) in
  let place node port = number node, decimal port in
  let line f text = match String.split_on_char ' ' text with
    | "raw" :: [what] -> { f with raw_allowed = what = "allowed" }
    | "keys" :: set :: ["-"] -> Hashtbl.add sets set []; f
    | "keys" :: set :: keys -> Hashtbl.add sets set (List.map p_key keys); f
    | ["switch"; guid; _; entries; enforces; filters; key; protect; lease; _] ->
      { f with devices = { d_guid = number guid; entries = count (value entries); enforces = ways (value enforces);
                           filters = ways (value filters); mkey = guard (value key); protect = count (value protect);
                           lease = count (value lease) } :: f.devices }
    | ["port"; node; port; state; enforce; filter; keys] ->
      { f with ports = { p_at = place node port; state = count (value state); enforce = ways (value enforce);
                         filter_raw = ways (value filter); p_keys = table keys } :: f.ports }
    | ["end"; guid; node; port; kind; keys; cls; _; _; _; _] ->
      { f with ends = { e_guid = number guid; e_at = place (value node) (value port); is_switch = value kind = "switch";
                        e_keys = table keys; of_class = Hashtbl.find sets (value cls) } :: f.ends }
    | ["cable"; a; x; b; y; listed] ->
      { f with cables = { c_a = place a x; c_b = place b y; listed = listed = "listed" } :: f.cables }
    | "unread" :: _ -> { f with unread = true }
    | ("ibwarden" | "made" | "expires" | "revision" | "snapshot" | "policy" | "partition" | "class" | "sha256") :: _ | [""] -> f
    | _ -> failwith (file ^ ": " ^ text) in
  let channel = open_in_bin file in
  let text = really_input_string channel (in_channel_length channel) in
  close_in channel;
  List.fold_left line empty (String.split_on_char '\n' text)

let () =
  for i = 1 to Array.length Sys.argv - 1 do
    let file = Sys.argv.(i) in
    let said = match check (read file) with Yes -> "yes" | No -> "no" | Unknown -> "unknown" in
    print_endline (said ^ " " ^ file)
  done

// Package look has the commands that read a fabric and change nothing in it but a LED or a
// counter: audit, devices, doctor, get, led, net, routing, trace and why. Files are named
// after their command; reading.go says where a command reads from (a live fabric, a
// snapshot, a service).
package look

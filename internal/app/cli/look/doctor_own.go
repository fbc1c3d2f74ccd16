package look

import "fmt"

// othersMode are the permissions of everybody but the owner.
const othersMode = 0o077

// own checks what there is of ibwarden itself; none of it is needed to read a fabric.
func (r *DoctorReport) own(f *Facts) {
	s := &f.Service
	switch {
	case s.Data == "":
		r.add(Skipped, "data directory", "none is named")
	case s.Kept.Err != nil:
		r.add(Skipped, "data directory", s.Kept.Err.Error())
	case !s.Kept.There:
		r.add(OK, "data directory", s.Data+" is not there yet: ibwarden run makes it")
	case !s.Kept.Dir:
		r.add(Warning, "data directory", s.Data+" is no directory: name another with --data or IBWARDEN_DATA")
	case s.Kept.Mode&othersMode != 0:
		r.add(Warning, "data directory", fmt.Sprintf("others can use %s (mode %04o): ibwarden run refuses it", s.Data, s.Kept.Mode), doctorCommand("chmod 0700 %s", s.Data))
	default:
		r.add(OK, "data directory", s.Data+", which only its owner can use")
	}
	if s.Kept.There && s.Kept.Dir {
		r.kept(s)
	}
	switch {
	case s.Active:
		r.add(OK, "service", "ibwarden.service runs", "systemctl status ibwarden")
	case s.Unit:
		r.add(Warning, "service", "ibwarden.service is installed, and does not run", "systemctl enable --now ibwarden", "journalctl -u ibwarden")
	default:
		r.add(OK, "service", "none is installed; nothing that only reads needs one")
	}
}

// kept checks what is in the data directory.
func (r *DoctorReport) kept(s *Service) {
	secret := doctorCommand("chmod 0600 %s/secret", s.Data)
	switch {
	case s.Secret.Err != nil:
		r.add(Skipped, "master secret", s.Secret.Err.Error())
	case !s.Secret.There:
		r.add(OK, "master secret", "none yet: ibwarden run makes it")
	case s.Secret.Mode&othersMode != 0:
		r.add(Warning, "master secret", fmt.Sprintf("others can use it (mode %04o): all keys are made of it", s.Secret.Mode), secret)
	default:
		r.add(OK, "master secret", "only its owner can read it")
	}
	if s.Cables {
		r.add(OK, "list of cables", "there is one")
	} else {
		r.add(Warning, "list of cables", "none: a device that is put where another was is not noticed", doctorCommand("ibwarden topology learn --fabric %s --cables %s/cables.topology", r.Fabric, s.Data))
	}
}

#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The manager of groups and its switches, where hosts ask for what no library asks for, and where one
# side is late or gone as the other is heard; and the network, as the manager hears it from its switches. Hosts are
# played, where they lie switches as well; the manager is real.
. "$(dirname "$0")/tap.sh"

switchd=$MUSTER_BUILD/tools/muster-switchd
am=$MUSTER_BUILD/tools/muster-am

# The version of its messages.
MANAGER_VERSION=$(sed -n 's/^#define MUSTER_MANAGER_VERSION[[:space:]]*//p' "$tap_home/../uapi/muster_manager.h")
export MANAGER_VERSION

# A host, or a switch: what it says, and what it hears.
cat >hosts.py <<'END'
import os, signal, socket, struct, sys, time
HELLO, WELCOME, CREATE, CREATED, LEAVE, LEFT = 1, 2, 3, 4, 5, 6
DONE, SWITCH, HOLD, ADD, REMOVE = 8, 9, 10, 12, 13
LAYOUT, VERSION = "<HHIQQQIIIIHBBIII", int(os.environ["MANAGER_VERSION"])
AGGREGATION, NOTHING, RADIX = 0xff0000, 0xffffffff, 8

class Peer:
    def __init__(self, number):
        self.number, self.lease = number, socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.lease.connect("\0" + sys.argv[1])

    def say(self, kind, tag=0, key=0, proof=0, context=0, life=0, group=0, tree=0, type=0, more=(), host=None):
        self.lease.send(struct.pack(LAYOUT, VERSION, kind, 0, tag, key, proof, self.number if host is None else host,
                                    context, life, group, tree, 0, type, 0, len(more), 0) + b"".join(more))

    # The sentence behind an answer, or what follows the head
    def hear(self):
        said = self.lease.recv(4096)
        fields = struct.unpack_from(LAYOUT, said)
        return dict(zip(("version", "kind", "status", "tag", "key", "proof", "host", "context", "life",
                         "group", "tree", "job", "type", "payload", "nr", "flags", "more"), fields + (said[64:],)))

class Host(Peer):
    def __init__(self, number, claims=()):
        Peer.__init__(self, number)
        self.say(HELLO, proof=7, life=1, more=[struct.pack("<QIHH", *claim, 0) for claim in claims])
        assert self.hear()["status"] == 0

    def create(self, hosts, tag=1, type=0, group=0):
        self.say(CREATE, tag=tag, type=type, group=group, context=1, life=1,
                 more=[struct.pack("<IIHHHH", host, 1, 0, 0, 0, 0) for host in hosts])

    def leave(self, tree=0, group=0, tag=0):
        self.say(LEAVE, tree=tree, group=group, tag=tag)

# what a switch that is s has at its ports; lies: other nodes
class Switch(Peer):
    def __init__(self, network, number, lies=None, radix=RADIX):
        Peer.__init__(self, AGGREGATION + number)
        nodes = network[number] if lies is None else lies
        nodes = nodes + [NOTHING] * (radix - len(nodes))
        self.say(SWITCH, life=1, key=digest(network), more=[struct.pack("<I", node) for node in nodes])
        said = self.hear()
        self.refused = said["more"].decode().rstrip("\0") if said["status"] else None

def s(number):
    return AGGREGATION + number

def mix(digest, word):
    return (digest ^ word) * 0x100000001b3 & 0xffffffffffffffff

# as muster_fabric_digest()
def digest(network):
    hosts = sum(node < AGGREGATION for nodes in network for node in nodes)
    value = mix(mix(0xcbf29ce484222325, hosts), RADIX)
    for number, nodes in enumerate(network):
        value = mix(value, s(number))
        for port, node in enumerate(nodes):
            if node != NOTHING:
                value = mix(mix(mix(value, port), node % AGGREGATION), node < AGGREGATION)
    return value

def same(expected, found):
    assert expected == found, f"expected {expected}, found {found}"

def await_file(name):
    while not os.path.exists(name):
        time.sleep(0.02)

END

# play NAME SCRIPT...: python with hosts, at the manager of that name
play() {
	cat hosts.py - >"$1.py"
	python3 "$1.py" "$name-m"
}

# manage [OPTION]...: a manager that is ready
manage() {
	: >report
	"$am" -m "@$name-m" "$@" >>report &
	manager=$!
	within 300 grep -q ready report
}

# begin TOPOLOGY [OPTION]...: a manager, and all its switches in one process
begin() {
	name=muster-manager-$$-$tap_nr
	topology=$1
	shift
	: >ready
	trap 'kill $manager' EXIT
	manage "$@"
	"$switchd" -t "$topology" -w "unix:@$name" -m "@$name-m" -j -c counters >ready &
	switches=$!
	trap 'kill -CONT $switches; kill $switches $manager' EXIT
	within 300 grep -q ready ready
}

# switch_groups NUMBER: so many has the switch
switch_groups() {
	rm -f counters
	kill -USR1 $switches
	sleep 0.1
	grep -q "\"groups\": $1," counters
}

# groups NUMBER: so many has the manager, and each of them the switch
groups() {
	: >report
	kill -USR1 $manager
	switch_groups "$1" && grep -q "^$1 groups" report
}

stays() {
	rm -f made looked
	begin switch:4 --shared
	play stays <<-'END' &
		host, other = Host(0), Host(1)
		host.create([0, 1])
		made = host.hear()
		statuses = [made["status"]]
		for tag in (2, 3):
		    host.create([0, 1], tag=tag, type=1, group=made["group"])
		    statuses.append(host.hear()["status"])
		assert statuses == [0, 0, 17], statuses
		open("made", "w")
		await_file("looked")
	END
	hosts=$!
	within 300 test -e made
	within 300 groups 2
	touch looked
	wait $hosts
	within 300 groups 0
}
check "a streaming group is made once, and that which is there stays" stays

asker_goes() {
	rm -f asked looked
	begin switch:4
	play asker_goes <<-'END' &
		host, other = Host(0), Host(1)
		open("ready_to_ask", "w")
		await_file("stopped")
		host.create([0, 1])
		host.lease.close()
		open("asked", "w")
		await_file("looked")
	END
	hosts=$!
	within 300 test -e ready_to_ask
	kill -STOP $switches
	touch stopped
	within 300 test -e asked
	kill -CONT $switches
	within 60 groups 0
	touch looked
	wait $hosts
}
check "a group whose asker has gone before it was made is given back, as nobody has heard of it" asker_goes

# resident PID: KiB
resident() {
	awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}

# A switch that does not read: what it is to hear does not become more and more.
stopped() {
	rm -f asked looked stopped before
	begin switch:4
	kill -STOP $switches
	before=$(resident $manager)
	play stopped <<-'END' &
		host, other = Host(0), Host(1)
		for tag in range(1, 20001):
		    host.create([0, 1], tag=tag)
		    host.leave(tag=tag)
		    assert host.hear()["kind"] == CREATED
		open("asked", "w")
		await_file("looked")
		host.create([0, 1])
		assert host.hear()["status"] == 0
		host.leave(tag=1)
	END
	hosts=$!
	within 300 test -e asked
	after=$(resident $manager)
	echo "$before KiB, then $after KiB"
	test "$after" -lt $((before + 3072))
	kill -CONT $switches
	within 300 groups 0
	touch looked
	wait $hosts
}
check "a switch that hears nothing costs the manager little, and is back when it does" stopped

# Its switches come to another manager one after the other, the last behind an order.
late_to_clean() {
	rm -f made go
	begin fat-tree:2x2x1
	kill $switches
	wait $switches
	for number in 0 1 2; do
		: >ready
		"$switchd" -t "$topology" -w "unix:@$name" -m "@$name-m" -s $number >ready &
		eval "switch_$number=$!"
		within 300 grep -q ready ready
	done
	trap 'kill -CONT $switch_1; kill $switch_0 $switch_1 $switch_2 $manager' EXIT
	play late_to_clean <<-'END' &
		hosts = [Host(number) for number in range(4)]
		hosts[0].create([0, 1, 2, 3])
		assert hosts[0].hear()["status"] == 0
		open("made", "w")
		await_file("go")
	END
	hosts=$!
	within 300 test -e made
	kill -STOP $switch_1
	kill -9 $manager
	wait $manager || :
	touch go
	wait $hosts
	manage
	within 300 known_by 2
	"$am" -m "@$name-m" --clean &
	order=$!
	sleep 0.5
	kill -CONT $switch_1
	within 300 gone "$order"
	wait $order
	known_by 3
	grep -q '^0 groups' report
}

# Whose switch comes to another manager behind him has left all the same.
leaves_early() {
	rm -f made go left looked over
	begin switch:4
	play leaves_early <<-'END' &
		host, other = Host(0), Host(1)
		made = []
		for tag in (1, 2):
		    host.create([0, 1], tag=tag)
		    made.append(host.hear())
		claims = [(group["key"], group["group"], group["tree"]) for group in made]
		open("made", "w")
		await_file("go")
		host, other = Host(0, claims), Host(1, claims)
		for one in (host, other):
		    one.leave(group=made[0]["group"])
		    assert one.hear()["status"] == 2
		open("left", "w")
		await_file("looked")
		host.lease.close()
		other.lease.close()
		Host(2)		# who has been heard behind them
		open("over", "w")
	END
	hosts=$!
	within 300 test -e made
	kill -STOP $switches
	kill -9 $manager
	wait $manager || :
	manage
	touch go
	within 300 test -e left
	if [ "$1" = one ]; then
		kill -CONT $switches
		within 300 groups 1
	fi
	touch looked
	within 300 test -e over
	kill -CONT $switches
	within 300 groups 0
	wait $hosts
}
check "who leaves a group before his switch has come to another manager is in it no more" leaves_early one
check "who goes before his switch has come leaves nothing behind" leaves_early both

# Who has left with one manager says nothing to the next.
left_before() {
	rm -f left go
	begin switch:4
	play left_before <<-'END' &
		host, other = Host(0), Host(1)
		host.create([0, 1])
		made = host.hear()
		host.leave(group=made["group"])
		assert host.hear()["kind"] == LEFT
		host.lease.close()
		open("left", "w")
		await_file("go")
		other = Host(1, [(made["key"], made["group"], made["tree"])])
		other.leave(group=made["group"])
		other.hear()
	END
	hosts=$!
	within 300 test -e left
	kill -9 $manager
	wait $manager || :
	manage
	within 300 groups 1
	touch go
	wait $hosts
	within 300 groups 0
}
check "another manager does not wait for who has left before" left_before

# As it ends it is asked for one, takes that back and the other, and hears no answer any more.
ends_unheard() {
	rm -f made go
	begin switch:4
	play ends_unheard <<-'END' &
		host = Host(0)
		host.create([0])
		assert host.hear()["status"] == 0
		open("made", "w")
		await_file("go")
		host.create([0], tag=2)
	END
	hosts=$!
	within 300 test -e made
	switch_groups 1
	kill -STOP $switches
	touch go
	wait $hosts
	kill $manager
	trap 'kill -CONT $switches; kill $switches' EXIT
	wait $manager
	kill -CONT $switches
	within 300 switch_groups 0
}
check "a switch hears what a manager takes back, though that one has ended before it is answered" ends_unheard

# known_by NUMBER: so many switches have come to the manager, and one has told it of a group
known_by() {
	: >report
	kill -USR1 $manager
	sleep 0.1
	same "$1" "$(grep -c ^switch report)"
}
check "an order to clean ends, though a switch comes behind it that has a group" late_to_clean

# ---- the network ------------------------------------------------------------------------------------

# alone [OPTION]...: a manager without switches
alone() {
	name=muster-manager-$$-$tap_nr
	trap 'kill $manager' EXIT
	manage "$@"
}

# ports: as the manager has heard them
ports() {
	: >report
	kill -USR1 $manager
	within 300 grep -q 'groups$' report
	sed -n 's/^switch \([0-9]*\) life 1 ports/switch \1:/p' report | sort
}

# has TOPOLOGY: they are those of the file, and so are hosts, switches and radix
has() {
	"$MUSTER_BUILD/tools/muster_fabric" "$1" >network
	same "$(sed -n 's/^\(switch [0-9]*\), node 0x[0-9a-f]*:/\1:/p' network | sort)" "$(ports)"
	same "$(sed -n 's/^hosts: \(.*\), switches: \(.*\), radix: \(.*\)/network \1 hosts \2 switches radix \3/p' network)" \
		"$(grep ^network report)"
}

discovers() {
	for shape in fat-tree:4x3x2 switch-torus:1x3x3 fat-tree:2x2x2x2x2 switch:5; do
		begin $shape
		has $shape
		kill $switches $manager
		trap - EXIT
		wait $switches $manager || :	# the next has its address
	done
}
check "the manager hears from its switches the network that their file has" discovers

says_what_is_missing() {
	alone
	same 1 "$(status_of "$am" -m "@$name-m" -x 0-2)"
	grep -q 'no switch has come' err
	same 1 "$(status_of "$am" -m "@$name-m" --drain=2)"
	grep -q 'no switch has come' err
	play missing <<-'END'
		network = [[0, 1, s(2)], [2, 3, NOTHING, s(2)], [NOTHING, s(1), s(0)]]
		host, other = Host(0), Host(3)

		def missing():
		    host.create([0, 3])
		    said = host.hear()
		    assert said["status"] == 113, said
		    return said["more"].decode().rstrip("\0")

		same("no switch has come", missing())
		spine = Switch(network, 2)
		same("switch 1 is at port 1 of switch 2 and has not come", missing())
		first = Switch(network, 0)
		same("switch 1 is at port 1 of switch 2 and has not come", missing())
		spine.lease.close()
		while "switch 1" in missing():
		    pass
		second = Switch(network, 1)
		same("switch 2 is at port 2 of switch 0 and has not come", missing())
		spine = Switch(network, 2)
		same([None] * 3, [one.refused for one in (first, second, spine)])
		host.create([0, 3])
		for one, parent, children in (
		    (first, 2, [(0, 0)]), (second, 3, [(3, 1)]), (spine, 255, [(s(1), 1), (s(0), 2)])):
		    asked = one.hear()
		    same((ADD, parent, len(children)), (asked["kind"], asked["context"], asked["nr"]))
		    same(children, [(node, port) for node, _, _, _, _, _, port, _ in
		                    struct.iter_unpack("<IIIIIHBB", asked["more"])])
		    one.say(DONE, tag=asked["tag"])
		same(0, host.hear()["status"])
		# it does not change any more
		second.lease.close()
		same("at port 0 of switch 1 is host 3, but in the network host 2",
		     Switch(network, 1, [3, 2, NOTHING, s(2)]).refused)
		same(None, Switch(network, 1).refused)
		same("the network has no switch 3", Switch(network + [[4, s(2)]], 3).refused)
	END
}
check "until all switches have come it is said which has not, then they take groups at the ports that they said" \
	says_what_is_missing

contradicts() {
	alone
	play contradicts <<-'END'
		network = [[0, 1, s(2)], [2, 3, s(2)], [s(0), s(1)]]
		spine = Switch(network, 2)
		for lies, why in (
		    ([2, 3], "switch 1 is at port 1 of switch 2, but switch 2 is at no port of switch 1"),
		    ([2, s(2), s(2)], "switch 2 is at ports 1 and 2 of switch 1"),
		    ([2, s(1), s(2)], "switch 1 is at port 1 of itself"),
		    ([1 << 16, 3, s(2)], "what is at port 0 of switch 1 is neither a host nor a switch"),
		    ([NOTHING - 1, 3, s(2)], "what is at port 0 of switch 1 is neither a host nor a switch")):
		    same(why, Switch(network, 1, lies).refused)
		for radix, why in (
		    (0, "switch 1 has 0 ports, but it can have 2 to 128"),
		    (129, "switch 1 has 129 ports, but it can have 2 to 128"),
		    (4096, "switch 1 has 4096 ports, but it can have 2 to 128"),
		    (40, "switch 1 has 40 ports and switch 2 8, but all have as many")):
		    same(why, Switch(network, 1, network[1][:radix], radix).refused)
		same("switch 65536, but there can be 65536 nodes", Switch(network + [[9]] * (1 << 16), 1 << 16).refused)
		second = Switch(network, 1)
		same("host 2 is at port 1 of switch 0 and at port 0 of switch 1",
		     Switch(network, 0, [0, 2, s(2)]).refused)
		same("the switch is connected already", Switch(network, 1).refused)
		# its ways are those of a network that differs where it is not
		other = network[:2] + [[s(0), s(1), NOTHING]]
		other[1] = [3, 2, s(2)]
		same("the ways of switch 0 are laid by another network", Switch(other, 0).refused)
		# who says a length that is not there is not heard
		stranger = Peer(s(0))
		stranger.say(SWITCH, life=1, more=[bytes(4)] * 7 + [b""])
		same(b"", stranger.lease.recv(4096))
		first = Switch(network, 0)
		same(None, first.refused)
		# a group with members or neighbours that can be in no network
		for parent, child in (0, 1 << 16), (0, s(1 << 16)), (5, 0), (s(1 << 16), 0):
		    first.say(HOLD, host=parent, group=1, key=1,
		              more=[struct.pack("<IIIIIHBB", child, 1, 1, 1, 0, 0, 0, 0)])
		    same(REMOVE, first.hear()["kind"])
		host = Host(0)
		host.create([0])
		same(ADD, first.hear()["kind"])
	END
	ports
	grep -q '^network 4 hosts 3 switches radix 8' report
}
check "who contradicts others or makes no sense is refused, with both ends, and the network is found without" \
	contradicts
finish

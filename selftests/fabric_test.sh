#!/bin/sh
# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
# The command muster_fabric, and pictures by muster-switchd: networks have the ports and trees that they
# should, and what is wrong with one is told with its line.
. "$(dirname "$0")/tap.sh"

fabric=$MUSTER_BUILD/tools/muster_fabric
switchd=$MUSTER_BUILD/tools/muster-switchd

shapes() {
	same "hosts: 64, switches: 5, radix: 40" "$("$fabric" fat-tree:16x4x1 | head -n 1)"
	same "tree 0, root switch 4" "$("$fabric" fat-tree:16x4x1 | grep '^tree')"
	same "switch 1 combines host 2; up to switch 5 by port 3" \
		"$("$fabric" -n 3 -t 1 fat-tree:2x2x2x2x2 | grep '^switch 1 combines')"
	same "tree 0, root switch 0" "$("$fabric" switch:9 | grep '^tree')"
	same 9 "$("$fabric" switch-torus:1x3x3 | grep -c combines)"
}
check "one switch, fat trees and tori have the trees that follow from them" shapes

# text LINE REASON: a file of that body is refused with them
text() {
	printf 'muster-topology 1\nname x\nnodes 5\n%bswitch 3 4\nend\n' "$1" >network
	status=0
	"$fabric" -r 3 network >/dev/null 2>said || status=$?
	same 1 "$status"
	same "muster_fabric: network: $2" "$(cat said)"
}

refuses() {
	good='link 0 -- 3 1\nlink 1 -- 3 1\nlink 2 -- 4 1\nlink 3 -- 4 1\n'
	printf 'muster-topology 1\nname x\nnodes 5\n%bswitch 3 4\nend\n' "$good" >network
	"$fabric" -r 3 network >said
	text "${good}link 0 -- 4 1\n" "line 8: host 0 has more than 1 link"
	text "link 0 -- 3 1\nlink 1 -- 3 1\nlink 2 -- 3 1\nlink 3 -- 4 1\n" \
		"line 7: switch 3 has more than 3 links"
	text "link 0 -- 1 1\n" "line 4: hosts 0 and 1 are linked, but a host's link leads to a switch"
	text "${good}link 3 -- 4 1\n" "line 8: 3->4 stands further up already"
	text "${good}link 4 -- 4 1\n" "line 8: node 4 is linked to itself"
	text "link 0 -> 3 1\n" "line 4: 0 -> 3 leads one way, but a network's links lead both ways (--)"
	text "link 0 -- 3 1\nlink 1 -- 3 1\nlink 2 -- 4 1\n" "no way leads from node 3 to node 2"
	text "${good}link 2 -- 9 1\n" "line 8: node 9, but it can be 0 to 4"
}
check "a wrong network is refused with the line and the reason" refuses

# lines CLASS: so many of them are drawn
lines() {
	grep -c "<line class=\"$1\"" picture.svg || true
}

# drawn LINKS TREE UP ONCE DOWN WHICH: each link, and of two operations (of one packet and of four) each packet
drawn() {
	"$switchd" -t "$6" -d picture.svg
	python3 -c 'import xml.dom.minidom, sys; xml.dom.minidom.parse("picture.svg")'
	same "$1 $2 $2 $3 $4 $5" \
		"$(lines link) $(($(lines tree0) - 1)) $(($(lines tree1) - 1)) $(($(lines up) - 1)) $(($(lines once) - 1)) $(($(lines down) - 1))"
}

draws() {
	drawn 24 20 100 20 100 fat-tree:4x4x2
	drawn 27 17 85 17 85 switch-torus:1x3x3
	printf 'muster-topology 1\nname x\nnodes 5\nlink 0 -- 3 1\nlink 1 -- 3 1\nlink 2 -- 4 1\nlink 3 -- 4 1\nswitch 3 4\nend\n' \
		>"a<b>&c"
	drawn 4 4 20 4 20 "./a<b>&c"
	status=0
	"$switchd" -t switch:4 -d none/picture.svg 2>said || status=$?
	same "1 muster-switchd: none/picture.svg: No such file or directory" "$status $(cat said)"
}
check "a network is drawn with its trees, and an operation's packets" draws

refuse() {
	status=0
	"$fabric" "$@" >/dev/null 2>said || status=$?
	same 2 "$status"
}

usage() {
	refuse
	refuse -r 129 switch:4
	grep -q -- '--radix=129: a number from 2 to 128 is wanted' said
	refuse -n x switch:4
	refuse switch:4 switch:5
	status=0
	"$fabric" -n 4 switch:4 2>said || status=$?
	same 1 "$status"
	grep -q 'a group of 4 hosts, but there are 3' said
}
check "wrong requests are refused" usage
finish

// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * Links that rest (reliable.h): a link on which nothing is open is no more than two lives and
 * two numbers. Kept by themselves they are all that it takes to go on, so a link can be given
 * back without a word to the peer, who need not do the same: neither stream begins anew, and
 * what is still on its way from before is known again by its number.
 */
#include "reliable.h"

bool muster_link_idle(const struct muster_link *link)
{
	return link->peer_incarnation && !link->lost && !link->asking &&
	       link->oldest == link->next && !link->early && link->ack_us == UINT64_MAX;
}

bool muster_link_quiet(const struct muster_link *link, uint64_t now_us)
{
	return muster_link_idle(link) && now_us >= link->heard_us + link->config.probe_us;
}

void muster_link_rest(const struct muster_link *link, struct muster_link_rest *rest)
{
	*rest = (struct muster_link_rest){
		.former_incarnation = link->lost ? muster_link_meant(link) :
						   link->former_incarnation,
	};
	if (!muster_link_idle(link))
		return;
	rest->peer_incarnation = link->peer_incarnation;
	rest->next = link->next;
	rest->expected = link->expected;
}

/*
 * Whether the peer is still there is not known: it is asked, unless it speaks or is spoken to first.
 * What is for whoever is there waits for the answer: the life that was known would take it along.
 */
void muster_link_resume(struct muster_link *link, uint64_t now_us,
			const struct muster_link_rest *rest)
{
	link->former_incarnation = rest->former_incarnation;
	if (!rest->peer_incarnation)
		return;
	link->peer_incarnation = rest->peer_incarnation;
	link->unsure = true;
	link->oldest = link->next = rest->next;
	link->expected = rest->expected;
	link->heard_us = now_us - link->config.probe_us;
	link->next_us = now_us;
}

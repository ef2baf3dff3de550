// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * The end of a communicator's streams. A device drops what comes for a context that is
 * closed, and with it credits of a pair would be lost. So each member's farewell says how
 * many fragments it has sent in all: those of them that did not come before the context
 * was closed here never will, and count as read. What is closed is remembered until
 * all have said farewell from whom something came. A farewell takes a credit of its pair, so
 * of thousands that are freed at once the last are heard some turns later; all that members make
 * together lets them hear each other, so no more than that are ever remembered.
 */
#include <stdlib.h>

#include "channel.h"
#include "message.h"

static struct muster_channel **closed_find(struct muster *job, uint32_t context, uint32_t life)
{
	struct muster_channel **place = &job->closed[context % MUSTER_COMM_BUCKETS];

	while (*place && ((*place)->context != context || (*place)->life != life))
		place = &(*place)->next;
	return place;
}

/* Of what a member has sent in all, the rest will never come. */
static void settle(struct muster *job, uint32_t rank, struct peer *peer, uint32_t sent)
{
	muster_pair_read(job, rank, sent - peer->came);
	peer->came = 0;
}

static void closed_free(struct muster *job, struct muster_channel **place)
{
	struct muster_channel *channel = *place;

	*place = channel->next;
	job->nr_closed--;
	muster_members_put(job, channel->ranks);
	free(channel);
}

/* A farewell to who has closed the communicator already. Nothing is known: nothing ever came. */
void muster_channel_closed(struct muster *job, uint32_t rank,
			   const struct muster_control *control)
{
	struct muster_channel **place = closed_find(job, control->context, control->life);
	uint32_t i = 0;

	while (*place && i < (*place)->size && (*place)->ranks[i] != rank)
		i++;
	if (!*place || i == (*place)->size || !(*place)->peers[i].came) {
		muster_pair_read(job, rank, control->about.sent);
		return;
	}
	settle(job, rank, &(*place)->peers[i], control->about.sent);
	if (!--(*place)->unsettled)
		closed_free(job, place);
}

/* Takes over the communicator's ranks, if there is something to remember. */
void muster_channel_close(struct muster_comm *comm)
{
	struct muster_channel *channel = comm->channel;
	struct muster *job = comm->job;

	if (!channel)
		return;
	comm->channel = NULL;
	muster_pair_await_no_more(job, &channel->sends);
	for (uint32_t i = 0; i < comm->size; i++) {
		struct peer *peer = &channel->peers[i];

		muster_pair_await_no_more(job, &peer->says);
		while (peer->kept)
			muster_kept_drop(channel, peer);
		if (peer->settled)
			settle(job, comm->ranks[i], peer, peer->said);
		channel->unsettled += peer->came > 0;
	}
	if (channel->unsettled) {
		channel->ranks = comm->ranks;
		comm->ranks = NULL;
		channel->next = job->closed[channel->context % MUSTER_COMM_BUCKETS];
		job->closed[channel->context % MUSTER_COMM_BUCKETS] = channel;
		job->nr_closed++;
	} else {
		free(channel);
	}
}

void muster_channels_forget(struct muster *job)
{
	for (int i = 0; i < MUSTER_COMM_BUCKETS; i++)
		while (job->closed[i])
			closed_free(job, &job->closed[i]);
}

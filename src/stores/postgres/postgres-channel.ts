// Sends short texts to another process of the store through its own channel: the DeltaChannel for live deltas between
// machines. It does not know what they mean. A lost text is not sent again.
import type { Clock } from '../../ports/system.ts'
import type { DeltaChannel } from '../../ports/store.ts'
import type { PostgresConnections } from './connections.ts'
import { type NotificationListener, isChannelName } from './notification-listener.ts'
import { HINT_BYTES_MAX } from './commit-hints.ts'
import { Patience } from './database-trouble.ts'

/** Addresses of this kind start with this. The rest is a channel. */
const SCHEME = 'pg:'

export type PostgresChannelOptions = {
  readonly connections: PostgresConnections
  readonly ear: NotificationListener | null
  readonly clock: Clock
  /** The number of this channel in the process. */
  readonly n: number
}

export function postgresChannel({ connections, ear, clock, n }: PostgresChannelOptions): DeltaChannel {
  let unlisten = (): void => {}
  let closed = false
  return {
    bytesMax: HINT_BYTES_MAX,
    async open(listener) {
      // The channel's name is known once the store is open.
      const opened =
        ear &&
        (await connections.open().then(
          () => true,
          () => false,
        ))
      if (!ear || !opened || closed) return null
      const channel = `terret_live_${connections.id}_${n}`
      unlisten = await ear.listen(channel, listener)
      if (closed) unlisten()
      return `${SCHEME}${channel}`
    },
    async send(address, texts) {
      const to = address.slice(SCHEME.length)
      if (!address.startsWith(SCHEME) || !isChannelName(to) || texts.length === 0) return
      const options = { patience: new Patience(clock, 0), idle: true }
      const text = 'select pg_notify($1, said) from unnest($2::text[]) said'
      await connections.reader.ask('terret_post', text, [to, texts], options).catch(() => {})
    },
    close() {
      closed = true
      unlisten()
    },
  }
}

// Short texts to another process of the store, by a channel of its own: the way of live deltas between machines. What they say is
// not known here. A text that is lost is not sent again.
import type { Clock } from '../../ports/system.ts'
import type { Post } from '../../ports/store.ts'
import type { Connections } from './connect.ts'
import { type Ear, isChannel } from './ear.ts'
import { HINT_BYTES_MAX } from './news.ts'
import { Patience } from './trouble.ts'

/** What an address of this kind starts with. The rest is a channel. */
const SCHEME = 'pg:'

export type PostOptions = {
  readonly connections: Connections
  readonly ear: Ear | null
  readonly clock: Clock
  /** Which of this process: each has a channel of its own. */
  readonly n: number
}

export function channelPost({ connections, ear, clock, n }: PostOptions): Post {
  let unlisten = (): void => {}
  let closed = false
  return {
    bytesMax: HINT_BYTES_MAX,
    async open(listener) {
      // The name of the channel is known when the store is open.
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
      if (!address.startsWith(SCHEME) || !isChannel(to) || texts.length === 0) return
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

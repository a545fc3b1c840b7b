// All that is between a store and its database, put together for the store's door: connections, hints and post.
import type { Post } from '../../ports/store.ts'
import { steadyClock as clock } from '../plan/clock.ts'
import { Connections } from './connect.ts'
import { Ear } from './ear.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { Lag } from './lag.ts'
import { News, type NewsOptions } from './news.ts'
import { channelPost } from './post.ts'

export type Network = {
  readonly connections: Connections
  /** The hints of one store. `heard` is called with what other processes did. */
  readonly hints: (heard: NewsOptions['heard'], lag?: Lag) => News
  /** One for each Live. */
  readonly post: () => Post
}

/** `name` tells the stores of one database apart: at most 56 small letters, digits and `_`. Nothing is loaded or connected yet. */
export function network(options: ConnectOptions, name: string): Network {
  const connections = new Connections(options)
  const ear = connections.ear && new Ear(connections.ear, clock)
  let posts = 0
  return {
    connections,
    hints: (heard, lag) =>
      new News({ connections, ear, clock, channel: `terret_${name}`, heard, ...(lag ? { lag } : {}) }),
    post: () => channelPost({ connections, ear, clock, n: ++posts }),
  }
}

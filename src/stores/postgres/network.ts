// Everything between a store and its database: connections, hints and delta channels. It only builds them.
import type { DeltaChannel } from '../../ports/store.ts'
import { steadyClock as clock } from '../plan/system-clock.ts'
import { PostgresConnections } from './connections.ts'
import { NotificationListener } from './notification-listener.ts'
import type { ConnectOptions } from './connect-options.ts'
import type { HintLag } from './hint-lag.ts'
import { CommitHints, type CommitHintsOptions } from './commit-hints.ts'
import { postgresChannel } from './postgres-channel.ts'

export type Network = {
  readonly connections: PostgresConnections
  /** The hints of one store. Calls `heard` with the changes of other processes. */
  readonly hints: (heard: CommitHintsOptions['heard'], lag?: HintLag) => CommitHints
  /** One channel for each Live. */
  readonly post: () => DeltaChannel
}

/**
 * `name` distinguishes the stores of one database: at most 56 lower-case letters, digits and `_`. Nothing is loaded or
 * connected yet.
 */
export function buildNetwork(options: ConnectOptions, name: string): Network {
  const connections = new PostgresConnections(options)
  const ear = connections.ear && new NotificationListener(connections.ear, clock)
  let posts = 0
  return {
    connections,
    hints: (heard, lag) =>
      new CommitHints({ connections, ear, clock, channel: `terret_${name}`, heard, ...(lag ? { lag } : {}) }),
    post: () => postgresChannel({ connections, ear, clock, n: ++posts }),
  }
}

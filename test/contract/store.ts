// The contract of a Store, as one suite for every implementation: the core, and what each capability promises that its
// fallback does not. What only one store promises is in test/stores.
import { describe } from 'vitest'
import { CAPABILITIES, type Capability, type MakeFixture } from './fixture.ts'
import { describeClockRemovals, describeClocks } from './store-clock.ts'
import { describeHistory } from './store-history.ts'
import { describeHealth, describeInbox, describeSentEvents } from './store-inbox.ts'
import { describeDueOfWorkers, describeIndexes, describeOrders } from './store-index.ts'
import { describeAddresses, describeClaims, describeLeases } from './store-lease.ts'
import { describeLog, describeNewestSnapshot } from './store-log.ts'
import { describeMoney } from './store-money.ts'
import { describeCardNews, describeEventNews, describeNews } from './store-news.ts'
import {
  describeFacts,
  describeOutcomePages,
  describePages,
  describeReaderSnapshots,
  describeSnapshots,
} from './store-pages.ts'
import { describeRemoval, describeRemovalNews, describeRemovalOfWorkers } from './store-removal.ts'
import { describeRepeats } from './store-repeat.ts'
import { describeLostAttempts, describeTrouble } from './store-trouble.ts'

type Suite = (make: MakeFixture) => void

/** What every store keeps, if need be with the fallbacks. */
const CORE: readonly Suite[] = [
  describeLog,
  describeHistory,
  describeRepeats,
  describeClaims,
  describeInbox,
  describeMoney,
  describeIndexes,
  describeFacts,
  describeTrouble,
  describeNews,
]

/** What is kept only with all of these capabilities. */
const MORE: readonly (readonly [needed: readonly Capability[], suites: readonly Suite[]])[] = [
  [['workers'], [describeLeases, describeClocks, describeDueOfWorkers, describeLostAttempts]],
  [['notifications'], [describeEventNews]],
  [['snapshots'], [describeNewestSnapshot, describeSnapshots]],
  [['search'], [describeOutcomePages]],
  [['upkeep'], [describeRemoval, describeCardNews]],
  [['workers', 'deltas'], [describeAddresses]],
  [
    ['workers', 'upkeep'],
    [describeClockRemovals, describeHealth, describeRemovalOfWorkers],
  ],
  [
    ['search', 'upkeep'],
    [describeSentEvents, describeOrders, describePages],
  ],
  [['snapshots', 'upkeep'], [describeReaderSnapshots]],
  [['notifications', 'upkeep'], [describeRemovalNews]],
]

/** `has`: the capabilities that the store has itself. */
export function describeStore(name: string, make: MakeFixture, has: readonly Capability[] = CAPABILITIES): void {
  describe(`${name} as a store`, () => {
    for (const suite of CORE) suite(make)
    for (const [needed, suites] of MORE)
      if (needed.every((capability) => has.includes(capability))) for (const suite of suites) suite(make)
  })
}

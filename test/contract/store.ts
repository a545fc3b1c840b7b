// The contract of a Store, as one suite for every implementation. What only one of them promises is in test/stores.
import { describe } from 'vitest'
import type { MakeFixture } from './fixture.ts'
import { describeClocks } from './store-clock.ts'
import { describeHistory } from './store-history.ts'
import { describeInbox } from './store-inbox.ts'
import { describeIndexes } from './store-index.ts'
import { describeLeases } from './store-lease.ts'
import { describeLog } from './store-log.ts'
import { describeMoney } from './store-money.ts'
import { describeNews } from './store-news.ts'
import { describePages } from './store-pages.ts'
import { describeRemoval } from './store-removal.ts'
import { describeRepeats } from './store-repeat.ts'
import { describeTrouble } from './store-trouble.ts'

export function describeStore(name: string, make: MakeFixture): void {
  describe(`${name} as a store`, () => {
    describeLog(make)
    describeHistory(make)
    describeRepeats(make)
    describeLeases(make)
    describeClocks(make)
    describeInbox(make)
    describeMoney(make)
    describeIndexes(make)
    describePages(make)
    describeTrouble(make)
    describeNews(make)
    describeRemoval(make)
  })
}

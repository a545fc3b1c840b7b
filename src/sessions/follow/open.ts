// The options and types of `session.follow` and `harness.watch`. Their code is loaded at the first use.
import type { CallKey } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import type { LiveDelta } from '../../live/local-live.ts'
import { countCheck, flagCheck, oneOf, optionsChecker, textCheck } from '../../options.ts'
import type { CardFilter, Status } from '../../ports/store.ts'
import type { TreeCard } from '../../stores/plan/tree-cost.ts'
import type { SessionAccess } from '../await-run.ts'
import { signalCheck } from '../command.ts'
import { checkHarnessOpen } from '../drive/place.ts'
import { labelsCheck } from '../metadata.ts'
import { PullIterator } from './pull.ts'

/** Options of `follow`: where to begin, and whether live text comes too. */
export type FollowOptions = {
  /**
   * Gives events after this seq. Default: from the beginning. A seq beyond the last event is refused with
   * `cursor_stale`.
   */
  readonly after?: number
  /** Also gives the live deltas that reach this process. */
  readonly deltas?: boolean
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** For `output`, `call` is the call that printed it. */
export type Followed =
  | { readonly type: 'event'; readonly event: Event }
  | ({ readonly type: 'delta'; readonly call?: CallKey } & LiveDelta)

/** The sessions whose cards are watched, with the filters of `list`. Default: all, including children. */
export type WatchOptions = Pick<Partial<CardFilter>, 'status' | 'root' | 'parent' | 'folder' | 'where'> & {
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** `gone`: the session was removed, or no longer passes the filter. */
export type CardChange =
  | { readonly type: 'card'; readonly card: TreeCard }
  | { readonly type: 'gone'; readonly session: string }

const checkFollow = optionsChecker<FollowOptions>('follow', {
  after: countCheck(),
  deltas: flagCheck,
  signal: signalCheck,
})
const checkWatch = optionsChecker<WatchOptions>('watch', {
  status: oneOf<Status>({ idle: true, running: true, rescheduling: true, requires_action: true, terminated: true }),
  root: textCheck,
  parent: textCheck,
  folder: textCheck,
  where: labelsCheck,
  signal: signalCheck,
})

export function followSession(place: SessionAccess, options: FollowOptions = {}): AsyncIterableIterator<Followed> {
  checkFollow(options)
  checkHarnessOpen(place)
  const { worker, services } = place
  const open = async (news: () => void) => (await import('./follow.ts')).openFollow(place, options, news)
  return new PullIterator({ worker, clock: services.clock, signal: options.signal, open })
}

/** Changes are collected from this call on, so that a list that is read afterwards has no gap. */
export function watchSessionCards(
  place: Omit<SessionAccess, 'id'>,
  options: WatchOptions = {},
): AsyncIterableIterator<CardChange> {
  checkWatch(options)
  checkHarnessOpen(place)
  const { worker, services } = place
  const changed = new Set<string>()
  let tell = (): void => {}
  const unwatch = services.store.watchCards((session) => {
    changed.add(session)
    tell()
  })
  const open = async (news: () => void) => {
    tell = news
    return (await import('./cards.ts')).openCardWatch(services, options, changed)
  }
  const pull = new PullIterator({ worker, clock: services.clock, signal: options.signal, open, left: unwatch })
  pull.attend()
  return pull
}

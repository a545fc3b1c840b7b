// `session.follow` and `harness.watch`: their options, and what they give. What they do is loaded when it is first asked for.
import type { CallKey } from '../../kernel/content.ts'
import type { Event } from '../../kernel/event.ts'
import { Fault } from '../../kernel/failure.ts'
import type { LiveDelta } from '../../live/live.ts'
import { count, flag, oneOf, optionsOf, text } from '../../options.ts'
import type { CardFilter, Status } from '../../ports/store.ts'
import type { TreeCard } from '../../stores/plan/tree-cost.ts'
import type { Place } from '../await-run.ts'
import { signalCheck } from '../command.ts'
import { labelsCheck } from '../metadata.ts'
import { Pull } from './pull.ts'

export type FollowOptions = {
  /** Events after this seq. Default: from the beginning. Beyond the last event it is refused with `cursor_stale`. */
  readonly after?: number
  /** Also what is being said, as far as this process can hear it. */
  readonly deltas?: boolean
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** `call` is there for `output`: the call that printed it. */
export type Followed =
  | { readonly type: 'event'; readonly event: Event }
  | ({ readonly type: 'delta'; readonly call?: CallKey } & LiveDelta)

/** The sessions whose cards are watched, as `list` has it. Default: all, children too. */
export type WatchOptions = Pick<Partial<CardFilter>, 'status' | 'root' | 'parent' | 'folder' | 'where'> & {
  /** Ends it. */
  readonly signal?: AbortSignal
}

/** `gone`: it was removed, or is not one of those that are watched any more. */
export type CardChange =
  | { readonly type: 'card'; readonly card: TreeCard }
  | { readonly type: 'gone'; readonly session: string }

const checkFollow = optionsOf<FollowOptions>('follow', { after: count(), deltas: flag, signal: signalCheck })
const checkWatch = optionsOf<WatchOptions>('watch', {
  status: oneOf<Status>({ idle: true, running: true, rescheduling: true, requires_action: true, terminated: true }),
  root: text,
  parent: text,
  folder: text,
  where: labelsCheck,
  signal: signalCheck,
})

export function following(place: Place, options: FollowOptions = {}): AsyncIterableIterator<Followed> {
  checkFollow(options)
  checkOpen(place)
  const { worker, services } = place
  const open = async (news: () => void) => (await import('./follow.ts')).openFollow(place, options, news)
  return new Pull({ worker, clock: services.clock, signal: options.signal, open })
}

/** What changes is noted from here on, so that a list that is read after this call has no gap. */
export function watching(place: Omit<Place, 'id'>, options: WatchOptions = {}): AsyncIterableIterator<CardChange> {
  checkWatch(options)
  checkOpen(place)
  const { worker, services } = place
  const changed = new Set<string>()
  let tell = (): void => {}
  const unwatch = services.store.watchCards((session) => {
    changed.add(session)
    tell()
  })
  const open = async (news: () => void) => {
    tell = news
    return (await import('./cards.ts')).openCards(services, options, changed)
  }
  const pull = new Pull({ worker, clock: services.clock, signal: options.signal, open, left: unwatch })
  pull.attend()
  return pull
}

function checkOpen({ worker }: Omit<Place, 'id'>): void {
  if (worker.closed) throw new Fault('harness_closed', 'This harness is closed. Make a new one to go on.')
}

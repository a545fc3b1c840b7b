// The head of a session: what it is, how it stands, what it costs, and what can be done with it. What the token may not do is not there;
// what can not be done now says why.
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Session } from '../../../kernel/index.ts'
import type { Me, WireCard, WirePending } from '../../../server/wire.ts'
import { stateOf } from '../../../view/tree.ts'
import { acts, api, newKey } from '../../data/api.ts'
import { useLiveState } from '../../data/query.ts'
import { Button, CopyButton } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ForkDialog } from '../../parts/fork-dialog.tsx'
import { Money } from '../../parts/figures.tsx'
import { Ellipsis, GitFork, Pin, Send, Square } from '../../parts/icons.ts'
import { Menu, type MenuItem } from '../../parts/menu.tsx'
import { Status } from '../../parts/status.tsx'
import { Text } from '../../parts/text.tsx'
import { CHILD_WAITS, stateWords, unknownWords, whyOf } from '../../parts/why.ts'
import { mark, useMarks } from '../../shell/marks.ts'
import { tell, toast } from '../../shell/toasts.tsx'
import { useKeys } from '../../shell/use-keys.ts'
import { cliOf, curlOf } from './commands.ts'
import { save } from './files.tsx'
import { PinsDialog } from './pins.tsx'
import { SendDialog } from './send.tsx'

export type HeadProps = {
  readonly card: WireCard
  readonly state: Session | null
  readonly me: Me | undefined
  /** Why nothing can be done from here. */
  readonly dead: string | null
  /** The event that a fork goes on from. */
  readonly forkAt: number
  /** What waits in it and below it. */
  readonly pending: readonly WirePending[]
}

type Open = 'send' | 'pins' | 'fork' | 'close' | 'undo' | null

/** For a session of another program: who goes on with it. */
function Elsewhere({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p className="session-elsewhere dim">
      No worker of this server drives it. <Text text={text} />
    </p>
  )
}

/** How it stands, whose it is, what it cost, and why it is as it is. */
function HeadFacts({ card, pending }: Pick<HeadProps, 'card' | 'pending'>) {
  const live = useLiveState()
  const id = card.session
  const unknown = unknownWords(card)
  const why = whyOf(card)
  const waits = pending.find(({ sessionId }) => sessionId !== id)
  return (
    <>
      <p className="session-facts dim">
        {waits !== undefined && card.status === 'running' ? null : (
          <Status of={stateOf(card)} words={stateWords(card)} />
        )}
        {unknown === null ? null : <Status of="unknown" words={unknown} />}
        {waits === undefined ? null : (
          <Link href={`/inbox?session=${encodeURIComponent(waits.sessionId)}&call=${encodeURIComponent(waits.callId)}`}>
            <Status of="requires_action" words={CHILD_WAITS} />
          </Link>
        )}
        <span className="session-id mono">
          <Text text={id} />
          <CopyButton text={id} label="Copy the id" />
        </span>
        <Link href={`/agents#${encodeURIComponent(card.agent)}`}>
          <Text text={card.agent} />
        </Link>
        {card.parent === undefined ? null : <Link href={`/s/${encodeURIComponent(card.parent)}`}>parent</Link>}
        <span>
          <Money usd={card.treeCostUsd} />
          {card.treeCostUsd > card.costUsd ? ' with children' : ''}
        </span>
        {live === 'idle' ? null : <Status of={live} />}
      </p>
      {why === null || card.elsewhere !== undefined ? null : (
        <p className="session-reason">
          <Text text={why} />
        </p>
      )}
    </>
  )
}

export function SessionHead({ card, state, me, dead, forkAt, pending }: HeadProps) {
  const [open, setOpen] = useState<Open>(null)
  const live = useLiveState()
  const mayAct = me?.role === 'operator' || me?.role === 'admin'
  const isClosed = card.status === 'terminated'
  const works = card.status !== 'idle' && !isClosed
  const id = card.session
  // From the past, too: that is what it is for.
  const mayFork = mayAct && live !== 'offline'
  const say = mayAct && dead === null && !isClosed
  useKeys({
    ...(say ? { send: () => setOpen('send') } : {}),
    ...(mayFork ? { fork: () => setOpen('fork') } : {}),
    mark: useMarking(id),
    copy: () => tell(navigator.clipboard.writeText(location.href), 'The link is copied.'),
  })
  return (
    <header className="page-head session-head">
      <div>
        <h1>
          <Text text={card.title ?? id} />
        </h1>
        <HeadFacts card={card} pending={pending} />
        <Elsewhere text={card.elsewhere} />
      </div>
      <div className="page-acts">
        {mayAct && !isClosed ? (
          <Button disabled={!say} onPress={() => setOpen('send')}>
            <Send size={14} aria-hidden /> Send…
          </Button>
        ) : null}
        {mayAct && works ? (
          <Button
            kind="danger"
            label="Interrupt"
            disabled={dead !== null}
            onPress={() => tell(acts.interrupt(id, {}, newKey()), 'Interrupted.')}
          >
            <Square size={13} aria-hidden />
          </Button>
        ) : null}
        {mayAct ? (
          <Button label="Fork here" disabled={!mayFork} onPress={() => setOpen('fork')}>
            <GitFork size={14} aria-hidden />
          </Button>
        ) : null}
        <Button label="Pins" disabled={live === 'offline'} onPress={() => setOpen('pins')}>
          <Pin size={14} aria-hidden />
        </Button>
        <More items={moreOf(card, state, mayAct, dead, setOpen)} />
      </div>
      <Dialogs open={open} session={id} works={works} mayAct={say} forkAt={forkAt} onClose={() => setOpen(null)} />
    </header>
  )
}

function More({ items }: { readonly items: readonly MenuItem[] }) {
  return <Menu label="More" icon={<Ellipsis size={16} aria-hidden />} items={items} />
}

type DialogsProps = {
  readonly open: Open
  readonly session: string
  readonly works: boolean
  readonly mayAct: boolean
  readonly forkAt: number
  readonly onClose: () => void
}

function Dialogs({ open, session, works, mayAct, forkAt, onClose }: DialogsProps) {
  switch (open) {
    case null:
      return null
    case 'send':
      return <SendDialog session={session} works={works} onClose={onClose} />
    case 'pins':
      return <PinsDialog session={session} works={works} mayAct={mayAct} onClose={onClose} />
    case 'fork':
      return <ForkDialog session={session} at={forkAt} onClose={onClose} />
    case 'close':
    case 'undo':
      return <Confirm what={open} session={session} onClose={onClose} />
  }
}

/** Marks this session to be compared with another, and goes there once there are two. */
function useMarking(id: string): () => void {
  const [, go] = useLocation()
  const marks = useMarks()
  return () => {
    const both = mark(id)
    if (both !== null) go(both)
    else toast(marks.includes(id) ? 'No longer marked.' : 'Marked. Mark another session to compare the two.')
  }
}

function moreOf(
  card: WireCard,
  state: Session | null,
  mayAct: boolean,
  dead: string | null,
  open: (what: Open) => void,
): readonly MenuItem[] {
  const id = card.session
  const not = dead ?? undefined
  const copy = (text: string, what: string) => () => tell(navigator.clipboard.writeText(text), `${what} is copied.`)
  const acting: readonly MenuItem[] = mayAct
    ? [
        { name: 'Wake now', not, onPress: () => tell(acts.wake(id), 'It is looked at.') },
        ...(card.status === 'running' && state?.paused !== true
          ? [{ name: 'Pause', not, onPress: () => tell(acts.interrupt(id, { mode: 'pause' }, newKey()), 'Paused.') }]
          : []),
        ...(state?.paused === true
          ? [
              {
                name: 'Resume',
                not,
                onPress: () => tell(acts.commands(id, { commands: [{ type: 'resume' }] }, newKey()), 'It goes on.'),
              },
            ]
          : []),
        { name: 'Undo the last run…', not, onPress: () => open('undo') },
        ...(card.status === 'terminated'
          ? []
          : [{ name: 'Close…', not, kind: 'danger' as const, onPress: () => open('close') }]),
      ]
    : []
  return [
    ...acting,
    { name: 'Download the log', onPress: () => tell(api.export(id).then((blob) => save(blob, `${id}.jsonl`))) },
    { name: 'Copy link', onPress: copy(location.href, 'The link') },
    { name: 'Copy CLI command', onPress: copy(cliOf(id, null), 'The command') },
    { name: 'Copy curl command', onPress: copy(curlOf(id, null), 'The command') },
  ]
}

const ASKS = {
  close: {
    title: 'Close this session?',
    says: 'It takes no more messages. What runs is ended. Its log stays.',
    does: 'Close it',
    done: 'It is closed.',
  },
  undo: {
    title: 'Undo the last run?',
    says: 'Files that its calls changed are put back as they were.',
    does: 'Undo',
    done: 'It is undone.',
  },
} as const

function Confirm({
  what,
  session,
  onClose,
}: {
  readonly what: 'close' | 'undo'
  readonly session: string
  readonly onClose: () => void
}) {
  const { title, says, does, done } = ASKS[what]
  const act = (): void => {
    onClose()
    tell(what === 'close' ? acts.close(session) : acts.undo(session, {}), done)
  }
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{says}</p>
      <div className="dialog-acts">
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="danger" onPress={act}>
          {does}
        </Button>
      </div>
    </Dialog>
  )
}

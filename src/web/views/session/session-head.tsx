// The head of a session's page: title, status, cost and actions. Actions that the token may not use are hidden; actions
// that are unavailable now say why.
import { useState } from 'react'
import { Link, useLocation } from 'wouter'
import type { Session } from '../../../kernel/index.ts'
import type { Me, WireCard, WirePending } from '../../../server/wire.ts'
import { stateOf } from '../../../view/tree-rows.ts'
import { apiActions, api, newKey } from '../../data/api.ts'
import { useLiveState } from '../../data/queries.ts'
import { Button, CopyButton } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ForkDialog } from '../../parts/fork-dialog.tsx'
import { Money } from '../../parts/figures.tsx'
import { Ellipsis, GitFork, Pin, Send, Square } from '../../parts/icons.ts'
import { Menu, type MenuItem } from '../../parts/menu.tsx'
import { StatusLabel } from '../../parts/status-label.tsx'
import { Text } from '../../parts/exact-text.tsx'
import { CHILD_WAITS, stateWords, unknownWords, statusReason } from '../../parts/status-words.ts'
import { toggleMark, useMarks } from '../../shell/compare-marks.ts'
import { toastResult, showToast } from '../../shell/toasts.tsx'
import { useKeys } from '../../shell/use-keys.ts'
import { cliCommand, curlCommand } from './terminal-commands.ts'
import { saveFile } from './result-files.tsx'
import { PinsDialog } from './pins-dialog.tsx'
import { SendDialog } from './send-dialog.tsx'

export type SessionHeadProps = {
  readonly card: WireCard
  readonly state: Session | null
  readonly me: Me | undefined
  /** Why no action is possible now. */
  readonly dead: string | null
  /** The last event that a fork includes. */
  readonly forkAt: number
  /** The pending calls of the session and of its descendants. */
  readonly pending: readonly WirePending[]
}

type OpenDialog = 'send' | 'pins' | 'fork' | 'close' | 'undo' | null

/** For a session of another program: says who drives it. */
function ElsewhereNote({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p className="session-elsewhere dim">
      No worker of this server drives it. <Text text={text} />
    </p>
  )
}

/** Status, agent, cost, and the reason for the status. */
function HeadFacts({ card, pending }: Pick<SessionHeadProps, 'card' | 'pending'>) {
  const live = useLiveState()
  const id = card.session
  const unknown = unknownWords(card)
  const why = statusReason(card)
  const waits = pending.find(({ sessionId }) => sessionId !== id)
  return (
    <>
      <p className="session-facts dim">
        {waits !== undefined && card.status === 'running' ? null : (
          <StatusLabel of={stateOf(card)} words={stateWords(card)} />
        )}
        {unknown === null ? null : <StatusLabel of="unknown" words={unknown} />}
        {waits === undefined ? null : (
          <Link href={`/inbox?session=${encodeURIComponent(waits.sessionId)}&call=${encodeURIComponent(waits.callId)}`}>
            <StatusLabel of="requires_action" words={CHILD_WAITS} />
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
        {live === 'idle' ? null : <StatusLabel of={live} />}
      </p>
      {why === null || card.elsewhere !== undefined ? null : (
        <p className="session-reason">
          <Text text={why} />
        </p>
      )}
    </>
  )
}

export function SessionHead({ card, state, me, dead, forkAt, pending }: SessionHeadProps) {
  const [open, setOpen] = useState<OpenDialog>(null)
  const live = useLiveState()
  const mayAct = me?.role === 'operator' || me?.role === 'admin'
  const isClosed = card.status === 'terminated'
  const works = card.status !== 'idle' && !isClosed
  const id = card.session
  // Forking also works at a past moment, which is its main use.
  const mayFork = mayAct && live !== 'offline'
  const say = mayAct && dead === null && !isClosed
  useKeys({
    ...(say ? { send: () => setOpen('send') } : {}),
    ...(mayFork ? { fork: () => setOpen('fork') } : {}),
    mark: useMarkToCompare(id),
    copy: () => toastResult(navigator.clipboard.writeText(location.href), 'The link is copied.'),
  })
  return (
    <header className="page-head session-head">
      <div>
        <h1>
          <Text text={card.title ?? id} />
        </h1>
        <HeadFacts card={card} pending={pending} />
        <ElsewhereNote text={card.elsewhere} />
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
            onPress={() => toastResult(apiActions.interrupt(id, {}, newKey()), 'Interrupted.')}
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
        <MoreMenu items={buildMenuItems(card, state, mayAct, dead, setOpen)} />
      </div>
      <HeadDialogs open={open} session={id} works={works} mayAct={say} forkAt={forkAt} onClose={() => setOpen(null)} />
    </header>
  )
}

function MoreMenu({ items }: { readonly items: readonly MenuItem[] }) {
  return <Menu label="More" icon={<Ellipsis size={16} aria-hidden />} items={items} />
}

type HeadDialogsProps = {
  readonly open: OpenDialog
  readonly session: string
  readonly works: boolean
  readonly mayAct: boolean
  readonly forkAt: number
  readonly onClose: () => void
}

function HeadDialogs({ open, session, works, mayAct, forkAt, onClose }: HeadDialogsProps) {
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
      return <ConfirmDialog what={open} session={session} onClose={onClose} />
  }
}

/** Marks this session for comparison, and opens the comparison once two are marked. */
function useMarkToCompare(id: string): () => void {
  const [, go] = useLocation()
  const marks = useMarks()
  return () => {
    const both = toggleMark(id)
    if (both !== null) go(both)
    else showToast(marks.includes(id) ? 'No longer marked.' : 'Marked. Mark another session to compare the two.')
  }
}

function buildMenuItems(
  card: WireCard,
  state: Session | null,
  mayAct: boolean,
  dead: string | null,
  open: (what: OpenDialog) => void,
): readonly MenuItem[] {
  const id = card.session
  const not = dead ?? undefined
  const copy = (text: string, what: string) => () =>
    toastResult(navigator.clipboard.writeText(text), `${what} is copied.`)
  const acting: readonly MenuItem[] = mayAct
    ? [
        { name: 'Wake now', not, onPress: () => toastResult(apiActions.wake(id), 'It is looked at.') },
        ...(card.status === 'running' && state?.paused !== true
          ? [
              {
                name: 'Pause',
                not,
                onPress: () => toastResult(apiActions.interrupt(id, { mode: 'pause' }, newKey()), 'Paused.'),
              },
            ]
          : []),
        ...(state?.paused === true
          ? [
              {
                name: 'Resume',
                not,
                onPress: () =>
                  toastResult(apiActions.commands(id, { commands: [{ type: 'resume' }] }, newKey()), 'It goes on.'),
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
    {
      name: 'Download the log',
      onPress: () => toastResult(api.export(id).then((blob) => saveFile(blob, `${id}.jsonl`))),
    },
    { name: 'Make this a test', onPress: () => toastResult(copyCase(id), CASE_COPIED) },
    { name: 'Copy link', onPress: copy(location.href, 'The link') },
    { name: 'Copy CLI command', onPress: copy(cliCommand(id, null), 'The command') },
    { name: 'Copy curl command', onPress: copy(curlCommand(id, null), 'The command') },
  ]
}

const CASE_COPIED = 'A case of a suite is copied. With its recording: terret eval add FILE ID'

async function copyCase(session: string): Promise<void> {
  await navigator.clipboard.writeText(JSON.stringify(await api.caseOf(session), null, 2))
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

function ConfirmDialog({
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
    toastResult(what === 'close' ? apiActions.close(session) : apiActions.undo(session, {}), done)
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

// Forks a session at an event, with the same or another agent and model, and optionally a first message. The original
// stays unchanged.
import { useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { apiActions, newKey } from '../data/api.ts'
import { useAgents } from '../data/queries.ts'
import { toastResult } from '../shell/toasts.tsx'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { ModelField } from './model-field.tsx'
import { oneLine } from '../../view/clean.ts'
import { Text } from './exact-text.tsx'
import '../style/compare.css'

export type ForkDialogProps = {
  readonly session: string
  /** The last event that the fork includes. Null: the end of the log. */
  readonly at: number | null
  readonly onClose: () => void
}

type ForkChoices = { readonly agent: string; readonly model: string; readonly message: string }
const AS_IT_IS: ForkChoices = { agent: '', model: '', message: '' }

export function ForkDialog({ session, at, onClose }: ForkDialogProps) {
  const [wanted, setWanted] = useState(AS_IT_IS)
  const { fork, busy, trouble } = useFork(session, at, onClose)
  return (
    <Dialog title={at === null ? 'Fork this session' : `Fork at event ${at}`} onClose={onClose}>
      <form
        className="fork-form"
        onSubmit={(event) => {
          event.preventDefault()
          if (!busy && event.nativeEvent.isTrusted) void fork(wanted, false)
        }}
      >
        <p className="dim">
          A new session goes on from {at === null ? 'the end' : `event ${at}`}. This one stays as it is. Calls that are
          open there are asked about again.
        </p>
        <ForkFields wanted={wanted} onChange={setWanted} />
        {trouble === null ? null : (
          <p className="fork-trouble" role="alert">
            <Text text={trouble} />
          </p>
        )}
        <div className="fork-acts">
          <Button disabled={busy} onPress={() => void fork(wanted, true)}>
            Fork and compare with the original
          </Button>
          <Button kind="primary" type="submit" disabled={busy} onPress={() => {}}>
            Fork
          </Button>
        </div>
      </form>
    </Dialog>
  )
}

function useFork(session: string, at: number | null, onClose: () => void) {
  const [busy, setBusy] = useState(false)
  const [trouble, setTrouble] = useState<string | null>(null)
  // Retries use the same keys, so that no fork is made twice. Other choices get another key.
  const keys = useRef(new Map<string, string>())
  const [, go] = useLocation()
  const fork = async ({ agent, model, message }: ForkChoices, compares: boolean): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    const body = {
      ...(at === null ? {} : { at }),
      ...(agent === '' ? {} : { agent }),
      ...(model.trim() === '' ? {} : { model: model.trim() }),
    }
    const key = keyForRequest(keys.current, JSON.stringify(body))
    try {
      const made = await apiActions.fork(session, body, key)
      if (message.trim() !== '')
        toastResult(apiActions.send(made.session, { input: message }, keyForRequest(keys.current, `${key} ${message}`)))
      onClose()
      const [a, b] = [encodeURIComponent(session), encodeURIComponent(made.session)]
      go(compares ? `/compare?a=${a}&b=${b}` : `/s/${b}`)
    } catch (error) {
      setTrouble(error instanceof Error ? error.message : String(error))
      setBusy(false)
    }
  }
  return { fork, busy, trouble }
}

function ForkFields({
  wanted,
  onChange,
}: {
  readonly wanted: ForkChoices
  readonly onChange: (next: ForkChoices) => void
}) {
  const agents = useAgents().data?.agents ?? []
  return (
    <>
      <label>
        Agent
        <select
          className="field"
          value={wanted.agent}
          onChange={({ target }) => onChange({ ...wanted, agent: target.value })}
        >
          <option value="">as it is</option>
          {agents.map(({ name }) => (
            <option key={name} value={name}>
              {oneLine(name, 80)}
            </option>
          ))}
        </select>
      </label>
      <ModelField value={wanted.model} placeholder="as it is" onChange={(model) => onChange({ ...wanted, model })} />
      <label>
        Message to go on with (may be empty)
        <textarea
          className="field"
          value={wanted.message}
          onChange={({ target }) => onChange({ ...wanted, message: target.value })}
        />
      </label>
    </>
  )
}

function keyForRequest(keys: Map<string, string>, what: string): string {
  const key = keys.get(what) ?? newKey()
  keys.set(what, key)
  return key
}

// Another run from an event of this one: the same or another agent, the same or another model, and perhaps what to say to it first. The
// session that it comes from stays as it is.
import { useId, useRef, useState } from 'react'
import { useLocation } from 'wouter'
import { acts, newKey } from '../data/api.ts'
import { useAgents } from '../data/query.ts'
import { tell } from '../shell/toasts.tsx'
import { Button } from './button.tsx'
import { Dialog } from './dialog.tsx'
import { oneLine } from '../../view/clean.ts'
import { Text } from './text.tsx'
import '../style/compare.css'

export type ForkDialogProps = {
  readonly session: string
  /** The last event that it goes on from. Null: the last of the log. */
  readonly at: number | null
  readonly onClose: () => void
}

type Wanted = { readonly agent: string; readonly model: string; readonly message: string }
const AS_IT_IS: Wanted = { agent: '', model: '', message: '' }

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
        <Fields wanted={wanted} onChange={setWanted} />
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
  // The same keys when somebody tries again: a fork that was made is not made twice. Other choices are another fork.
  const keys = useRef(new Map<string, string>())
  const [, go] = useLocation()
  const fork = async ({ agent, model, message }: Wanted, compares: boolean): Promise<void> => {
    setBusy(true)
    setTrouble(null)
    const body = {
      ...(at === null ? {} : { at }),
      ...(agent === '' ? {} : { agent }),
      ...(model.trim() === '' ? {} : { model: model.trim() }),
    }
    const key = keyFor(keys.current, JSON.stringify(body))
    try {
      const made = await acts.fork(session, body, key)
      if (message.trim() !== '')
        tell(acts.send(made.session, { input: message }, keyFor(keys.current, `${key} ${message}`)))
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

function Fields({ wanted, onChange }: { readonly wanted: Wanted; readonly onChange: (next: Wanted) => void }) {
  const agents = useAgents().data?.agents ?? []
  const models = [...new Set(agents.map(({ model }) => model).filter((name) => name !== ''))]
  const list = useId()
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
      <label>
        Model
        <input
          className="field"
          list={list}
          placeholder="as it is"
          spellCheck={false}
          autoComplete="off"
          value={wanted.model}
          onChange={({ target }) => onChange({ ...wanted, model: target.value })}
        />
        <datalist id={list}>
          {models.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </label>
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

function keyFor(keys: Map<string, string>, what: string): string {
  const key = keys.get(what) ?? newKey()
  keys.set(what, key)
  return key
}

// The pins of a session: a list, a field to add one, and buttons to remove them. A working session is sent the rule as
// a message instead.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { type SubmitEvent, useState } from 'react'
import { PIN_CHARS_MAX } from '../../../view/shown-text.ts'
import { apiActions, api, newKey } from '../../data/api.ts'
import { Button } from '../../parts/button.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { X } from '../../parts/icons.ts'
import { Text } from '../../parts/exact-text.tsx'

type PinsDialogProps = {
  readonly session: string
  /** A run is open. */
  readonly works: boolean
  readonly mayAct: boolean
  readonly onClose: () => void
}

export function PinsDialog({ session, works, mayAct, onClose }: PinsDialogProps) {
  const [trouble, setTrouble] = useState<string | null>(null)
  const queries = useQueryClient()
  const queryKey = ['pins', session]
  const { data, error } = useQuery({ queryKey, queryFn: ({ signal }) => api.pins(session, signal) })
  /** True if it succeeded. */
  const act = async (doing: Promise<unknown>): Promise<boolean> => {
    setTrouble(null)
    try {
      await doing
      return true
    } catch (thrown) {
      setTrouble(thrown instanceof Error ? thrown.message : String(thrown))
      return false
    } finally {
      await queries.invalidateQueries({ queryKey })
    }
  }
  const add = (text: string): Promise<boolean> =>
    act(works ? apiActions.send(session, { input: text, pin: true }, newKey()) : apiActions.pin(session, { text }))
  const said = trouble ?? (error === null ? null : error.message)
  return (
    <Dialog title="Pinned in this session" onClose={onClose}>
      <p className="dim small">Every later request holds this word for word, whatever else is cut or summarised.</p>
      {data?.pins.length === 0 ? <p className="dim">Nothing is pinned.</p> : null}
      <ul className="pins">
        {data?.pins.map(({ seq, text, inherited, name = String(seq) }) => (
          <li key={name}>
            <span>
              <Text text={text} />
              {inherited ? <span className="dim small"> from before the fork</span> : null}
            </span>
            {mayAct ? (
              <Button
                kind="quiet"
                label={`Unpin ${name}`}
                disabled={works}
                onPress={() => void act(apiActions.unpin(session, name))}
              >
                <X size={14} aria-hidden />
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      {mayAct ? <NewPin works={works} add={add} /> : null}
      {said === null ? null : (
        <p className="status bad" role="alert">
          <Text text={said} />
        </p>
      )}
    </Dialog>
  )
}

function NewPin({ works, add }: { readonly works: boolean; readonly add: (text: string) => Promise<boolean> }) {
  const [text, setText] = useState('')
  const [busy, setBusy] = useState(false)
  const onSubmit = (event: SubmitEvent): void => {
    event.preventDefault()
    if (!event.nativeEvent.isTrusted || text.trim() === '' || busy) return
    setBusy(true)
    void add(text).then((done) => {
      setBusy(false)
      if (done) setText('')
    })
  }
  return (
    <form onSubmit={onSubmit} className="send">
      <label>
        <span className="out-of-sight">Rule to pin</span>
        <textarea
          className="field"
          rows={3}
          value={text}
          maxLength={PIN_CHARS_MAX}
          placeholder="Only ever deploy to staging."
          onChange={(event) => setText(event.target.value)}
        />
      </label>
      {works ? <p className="dim small">It works now: the rule is sent to it as a message, and pinned.</p> : null}
      <div className="dialog-acts">
        <Button kind="primary" type="submit" disabled={text.trim() === '' || busy} onPress={() => {}}>
          Pin
        </Button>
      </div>
    </form>
  )
}

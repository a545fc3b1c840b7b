// The dialog for a new session: agent, first message, folder. A retry after a lost answer opens the same session.
import { type SyntheticEvent, useId, useState } from 'react'
import { useLocation } from 'wouter'
import { apiActions, ApiError } from '../data/api.ts'
import { useActionKey } from '../data/action-key.ts'
import { useRefusal } from '../data/use-refusal.ts'
import { useAgents } from '../data/queries.ts'
import { Button } from '../parts/button.tsx'
import { Dialog } from '../parts/dialog.tsx'
import { Text } from '../parts/exact-text.tsx'

export function NewSession({ onClose }: { readonly onClose: () => void }) {
  const [input, setInput] = useState('')
  const [agent, setAgent] = useState('')
  const [folder, setFolder] = useState('')
  const [trouble, setTrouble] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const [, go] = useLocation()
  const refusal = useRefusal('operator')
  const keyFor = useActionKey()
  const isReady = input.trim() !== '' && refusal === null && !busy
  const open = async (): Promise<void> => {
    const body = { input, ...(agent === '' ? {} : { agent }), ...(folder === '' ? {} : { folder }) }
    setBusy(true)
    setTrouble(null)
    try {
      const { session } = await apiActions.open(body, keyFor(body))
      onClose()
      go(`/s/${encodeURIComponent(session)}`)
    } catch (error) {
      setTrouble(error instanceof ApiError ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }
  const submit = (event: SyntheticEvent<HTMLFormElement>): void => {
    event.preventDefault()
    if (event.nativeEvent.isTrusted && isReady) void open()
  }
  return (
    <Dialog title="New session" onClose={onClose}>
      <form className="form" onSubmit={submit}>
        <label>
          What is it to do?
          <textarea
            className="field"
            autoFocus
            rows={5}
            value={input}
            placeholder="Say it as you would to a colleague. Ctrl Enter begins."
            onChange={(event) => setInput(event.target.value)}
            onKeyDown={(event) => {
              if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit()
            }}
          />
        </label>
        <div className="form-pair">
          <AgentField agent={agent} onChange={setAgent} />
          <label>
            Folder
            <input
              className="field mono"
              value={folder}
              placeholder="where the server works"
              spellCheck={false}
              onChange={(event) => setFolder(event.target.value)}
            />
          </label>
        </div>
        <NewSessionFooter trouble={trouble} refusal={refusal} isReady={isReady} onClose={onClose} />
      </form>
    </Dialog>
  )
}

function AgentField({ agent, onChange }: { readonly agent: string; readonly onChange: (next: string) => void }) {
  const agents = useAgents().data?.agents ?? []
  const id = useId()
  return (
    <label htmlFor={id}>
      Agent
      <select id={id} className="field" value={agent} onChange={(event) => onChange(event.target.value)}>
        <option value="">The server’s own</option>
        {agents.map(({ name }) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </select>
    </label>
  )
}

type NewSessionFooterProps = {
  readonly trouble: string | null
  readonly refusal: string | null
  readonly isReady: boolean
  readonly onClose: () => void
}

function NewSessionFooter({ trouble, refusal, isReady, onClose }: NewSessionFooterProps) {
  return (
    <>
      {trouble === null ? null : (
        <p className="form-trouble" role="alert">
          <Text text={trouble} />
        </p>
      )}
      <div className="form-acts">
        {refusal === null ? null : <span className="dim">{refusal}</span>}
        <span className="spread" />
        <Button onPress={onClose}>Cancel</Button>
        <Button kind="primary" type="submit" disabled={!isReady} onPress={() => {}}>
          Begin
        </Button>
      </div>
    </>
  )
}

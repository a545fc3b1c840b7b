// The command palette (Ctrl K): pages, sessions and commands in one list. Loaded when opened.
import { useQuery } from '@tanstack/react-query'
import { type KeyboardEvent, useEffect, useId, useState } from 'react'
import { useLocation } from 'wouter'
import { Search } from '../parts/icons.ts'
import { stateOf } from '../../view/tree-rows.ts'
import { api } from '../data/api.ts'
import { Dialog } from '../parts/dialog.tsx'
import { StatusLabel } from '../parts/status-label.tsx'
import { Text } from '../parts/exact-text.tsx'
import { KEYS, keyCaps } from './key-commands.ts'
import { PLACES } from './nav-places.ts'
import { changeSettings } from './browser-settings.ts'
import { runKeyCommand } from './use-keys.ts'

type PaletteEntry = {
  readonly id: string
  readonly name: string
  readonly keys?: string
  readonly state?: string
  readonly act: () => void
}

const SESSIONS = 8

export function Palette({ onClose }: { readonly onClose: () => void }) {
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  /** Enter was pressed before the results arrived: the first result is then chosen. */
  const [entered, setEntered] = useState(false)
  const [, go] = useLocation()
  const listId = useId()
  const sessions = useQuery({
    queryKey: ['sessions', 'palette', typed],
    queryFn: ({ signal }) => api.sessions({ limit: SESSIONS, ...(typed === '' ? {} : { q: typed }) }, signal),
  })
  const found: readonly PaletteEntry[] = [
    ...paletteCommands(go).filter(({ name }) => name.toLowerCase().includes(typed.toLowerCase())),
    ...(sessions.data?.sessions ?? []).map((card) => ({
      id: card.session,
      name: card.title ?? card.session,
      state: stateOf(card),
      act: () => go(`/s/${encodeURIComponent(card.session)}`),
    })),
  ]
  const chosen = found[Math.min(at, found.length - 1)]
  const choose = (entry: PaletteEntry | undefined): void => {
    onClose()
    entry?.act()
  }
  useEffect(() => {
    if (!entered || sessions.isFetching) return
    setEntered(false)
    if (chosen) choose(chosen)
  }, [entered, sessions.isFetching])
  const onKeyDown = (event: KeyboardEvent): void => {
    const by = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    if (by !== 0) {
      event.preventDefault()
      setAt((before) => Math.min(Math.max(0, before + by), found.length - 1))
    } else if (event.key === 'Enter') {
      if (chosen) choose(chosen)
      else setEntered(true)
    }
  }
  return (
    <Dialog title="Find anything" onClose={onClose} bare>
      <div className="palette-field">
        <Search size={18} aria-hidden />
        <input
          autoFocus
          role="combobox"
          aria-label="Find anything"
          aria-expanded
          aria-controls={listId}
          aria-activedescendant={chosen ? `${listId}-${chosen.id}` : undefined}
          placeholder="Sessions, pages, commands"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value)
            setAt(0)
            setEntered(false)
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <FoundEntries id={listId} found={found} chosen={chosen} onChoose={choose} />
    </Dialog>
  )
}

type FoundEntriesProps = {
  readonly id: string
  readonly found: readonly PaletteEntry[]
  readonly chosen: PaletteEntry | undefined
  readonly onChoose: (entry: PaletteEntry) => void
}

function FoundEntries({ id, found, chosen, onChoose }: FoundEntriesProps) {
  return (
    <ul className="palette-list" role="listbox" id={id} aria-label="Found">
      {found.map((entry) => (
        <li
          key={entry.id}
          id={`${id}-${entry.id}`}
          role="option"
          aria-selected={entry === chosen}
          className={entry === chosen ? 'palette-row chosen' : 'palette-row'}
          onClick={() => onChoose(entry)}
        >
          <Text text={entry.name} />
          <span className="palette-side">
            {entry.state === undefined ? null : <StatusLabel of={entry.state} />}
            {entry.keys === undefined ? null : keyCaps(entry.keys).map((cap, i) => <kbd key={i}>{cap}</kbd>)}
          </span>
        </li>
      ))}
      {found.length === 0 ? (
        <li className="palette-none" role="option" aria-selected={false}>
          Nothing is called so.
        </li>
      ) : null}
    </ul>
  )
}

function paletteCommands(go: (path: string) => void): readonly PaletteEntry[] {
  const pages = PLACES.map(({ path, name, command }) => {
    const keys = KEYS.find((row) => row.command === command)?.keys
    return { id: path, name, act: () => go(path), ...(keys === undefined ? {} : { keys }) }
  })
  const themes = (['light', 'dark', 'auto'] as const).map((theme) => {
    return { id: theme, name: `Theme: ${theme}`, act: () => changeSettings({ theme }) }
  })
  const fresh = { id: 'new', name: 'New session', keys: 'n', act: () => void runKeyCommand('new') }
  return [
    ...pages,
    fresh,
    ...themes,
    { id: 'help', name: 'Show the keys', keys: '?', act: () => void runKeyCommand('help') },
  ]
}

// A button with a menu of actions. It closes on a choice, on Escape, and when the focus or the mouse goes elsewhere.
import { type ReactNode, useEffect, useRef, useState } from 'react'
import { Button } from './button.tsx'

export type MenuItem = {
  readonly name: string
  readonly onPress: () => void
  readonly kind?: 'danger'
  /** Why the action is unavailable now. */
  readonly not?: string | undefined
}

export function Menu({
  label,
  icon,
  items,
}: {
  readonly label: string
  readonly icon: ReactNode
  readonly items: readonly MenuItem[]
}) {
  const [open, setOpen] = useState(false)
  const place = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!open) return
    const close = (event: Event): void => {
      if (!(event.target instanceof Node && place.current?.contains(event.target))) setOpen(false)
    }
    const escape = (event: KeyboardEvent): void => {
      if (event.key !== 'Escape') return
      setOpen(false)
      place.current?.querySelector('button')?.focus()
    }
    document.addEventListener('pointerdown', close)
    document.addEventListener('focusin', close)
    document.addEventListener('keydown', escape)
    return () => {
      document.removeEventListener('pointerdown', close)
      document.removeEventListener('focusin', close)
      document.removeEventListener('keydown', escape)
    }
  }, [open])
  return (
    <div className="menu" ref={place}>
      <Button label={label} pressed={open} onPress={() => setOpen(!open)}>
        {icon}
      </Button>
      {open ? (
        <ul className="menu-items" aria-label={label}>
          {items.map(({ name, onPress, kind, not }) => (
            <li key={name}>
              <button
                type="button"
                className={kind ?? ''}
                disabled={not !== undefined}
                title={not}
                onClick={(event) => {
                  if (!event.isTrusted) return
                  setOpen(false)
                  onPress()
                }}
              >
                {name}
              </button>
            </li>
          ))}
        </ul>
      ) : null}
    </div>
  )
}

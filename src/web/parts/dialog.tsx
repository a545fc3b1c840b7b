// A window above the page, as the browser has it: focus stays inside, Escape closes it, and focus goes back to where it was. On a phone
// it is a sheet from below.
import { X } from './icons.ts'
import { type ReactNode, useLayoutEffect, useRef } from 'react'
import { Button } from './button.tsx'

export type DialogProps = {
  readonly title: string
  readonly onClose: () => void
  readonly children: ReactNode
  /** Without a head: for one that begins with a field. */
  readonly bare?: boolean
  readonly wide?: boolean
}

export function Dialog({ title, onClose, children, bare = false, wide = false }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  // Closed while it is still in the page: then the browser gives the focus back.
  useLayoutEffect(() => {
    const open = dialog.current
    open?.showModal()
    // A window with fields begins at the first: the browser would take the button that closes it.
    open?.querySelector<HTMLElement>('input, textarea, select')?.focus()
    return () => open?.close()
  }, [])
  return (
    <dialog
      ref={dialog}
      className={`dialog${bare ? ' bare' : ''}${wide ? ' wide' : ''}`}
      aria-label={title}
      onCancel={(event) => {
        event.preventDefault()
        onClose()
      }}
      onClick={(event) => {
        // Beside the window.
        if (event.target === dialog.current) onClose()
      }}
    >
      <div className="dialog-body">
        {bare ? null : (
          <header className="dialog-head">
            <h2>{title}</h2>
            <Button kind="quiet" label="Close" onPress={onClose}>
              <X size={18} aria-hidden />
            </Button>
          </header>
        )}
        {children}
      </div>
    </dialog>
  )
}

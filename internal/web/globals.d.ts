// What the console leaves at the window, for its tests.
interface Window { ibwarden: {app: any, drawn: () => any, map?: any}; }

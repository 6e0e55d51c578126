// A Worker that runs in a hidden frame. Browsers start no worker from a file: address, and the site's search is one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inside = frame.contentWindow;
      addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
      this.frame = frame;
      this.ready = new Promise((resolve) => frame.addEventListener("load", resolve, { once: true }));
      inside.document.open();
      inside.document.write(
        `<body><script>
          postMessage = (data) => parent.postMessage(data, "*");
          importScripts = (...addresses) =>
            addresses.reduce((before, address) => before.then(() => new Promise((resolve) => {
              const script = document.createElement("script");
              script.src = address;
              script.onload = resolve;
              document.body.appendChild(script);
            })), Promise.resolve());
        <\/script><script src="${address}"><\/script></body>`,
      );
      inside.document.close();
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}

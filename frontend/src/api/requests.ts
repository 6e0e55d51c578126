// Generated from the pages' options in tb_dlprof_plugin/ by `make generate`.
// Do not edit. The options that pages have controls for, in their order.
import type { RequestOption } from "../state/requestParams";

export const PLAN_OPTIONS: readonly RequestOption[] = [
  {
    "name": "batch_size",
    "key": "batch",
    "label": "Batch",
    "kind": "count",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": true
  },
  {
    "name": "sequence_length",
    "key": "length",
    "label": "Tokens",
    "kind": "count",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": true
  },
  {
    "name": "image_size",
    "key": "side",
    "label": "Image side",
    "kind": "count",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": true
  },
  {
    "name": "precision",
    "key": "autocast",
    "label": "Precision",
    "kind": "word",
    "choices": [
      [
        "",
        "as recorded"
      ],
      [
        "bf16",
        "BF16 (autocast)"
      ],
      [
        "fp16",
        "FP16 (autocast)"
      ],
      [
        "fp8",
        "FP8 (matrix products)"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "optimizer",
    "key": "optimizer",
    "label": "Optimizer",
    "kind": "word",
    "choices": [
      [
        "",
        "as recorded"
      ],
      [
        "sgd",
        "sgd"
      ],
      [
        "momentum",
        "momentum"
      ],
      [
        "adam",
        "adam"
      ],
      [
        "adamw",
        "adamw"
      ],
      [
        "adam_fused",
        "adam_fused"
      ],
      [
        "adamw_fused",
        "adamw_fused"
      ],
      [
        "adam_loop",
        "adam_loop"
      ],
      [
        "adamw_loop",
        "adamw_loop"
      ],
      [
        "adamw_8bit",
        "adamw_8bit"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "checkpoint",
    "key": "checkpoint",
    "label": "Checkpoints",
    "kind": "text",
    "choices": [
      [
        "",
        "none"
      ],
      [
        "auto",
        "the cheapest that fit"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": true
  },
  {
    "name": "offload",
    "key": "offload",
    "label": "On the CPU",
    "kind": "text",
    "choices": [
      [
        "",
        "nothing"
      ],
      [
        "optimizer",
        "optimizer states"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": true
  },
  {
    "name": "relu",
    "key": "relu",
    "label": "ReLU",
    "kind": "word",
    "choices": [
      [
        "",
        "as recorded"
      ],
      [
        "inplace",
        "in place"
      ],
      [
        "behind_pool",
        "behind max pooling"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "shard",
    "key": "shard",
    "label": "Shared by",
    "kind": "word",
    "choices": [
      [
        "",
        "one GPU"
      ],
      [
        "ddp",
        "ddp"
      ],
      [
        "zero1",
        "zero1"
      ],
      [
        "zero2",
        "zero2"
      ],
      [
        "zero3",
        "zero3"
      ],
      [
        "fsdp2",
        "fsdp2"
      ],
      [
        "tp",
        "tp"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "gpus",
    "key": "gpus",
    "label": "GPUs",
    "kind": "count",
    "choices": [],
    "needs": "shard",
    "first": 2,
    "ofRun": false
  },
  {
    "name": "gpu",
    "key": "gpu",
    "label": "GPU",
    "kind": "text",
    "choices": [
      [
        "",
        "the run's own"
      ]
    ],
    "needs": null,
    "first": null,
    "ofRun": false
  }
];

export const ENERGY_OPTIONS: readonly RequestOption[] = [
  {
    "name": "price_per_kwh",
    "key": "price",
    "label": "Price of a kWh",
    "kind": "number",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "co2_per_kwh",
    "key": "co2",
    "label": "g of CO₂ a kWh",
    "kind": "number",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": false
  },
  {
    "name": "steps_per_epoch",
    "key": "steps",
    "label": "Steps of an epoch",
    "kind": "count",
    "choices": [],
    "needs": null,
    "first": null,
    "ofRun": true
  }
];
